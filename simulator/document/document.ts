/**
 * A YAML document for the checker: scalars, lists and maps with their positions. An alias becomes the object
 * it refers to, within limits. Duplicate keys and keys that are unsafe in JavaScript objects are refused
 * here.
 */
import { isAlias, isMap, isScalar, isSeq, type ParsedNode } from 'yaml'
import type { Alias, Pair, YAMLMap, YAMLSeq } from 'yaml'
import type { DocBroken, DocEntry, DocList, DocMap, DocNode, DocScalar } from './doc-node.ts'
import { type Path, type ProblemList } from './problem.ts'
import { isJsonText, parseJsonDocument } from './json-document.ts'
import { MAX_DEPTH, MAX_TEXT_BYTES, parseYaml } from './yaml-syntax.ts'

const MAX_ALIASES = 100
/** Maximum number of values that all aliases expand to. */
const MAX_ALIASED_VALUES = 100_000
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/**
 * Returns the root, or null if the text is not YAML. With other problems the root serves only to find more
 * problems. An empty text is a null scalar.
 */
export function parseDocument(text: string): {
  readonly root: DocNode | null
  readonly problems: ProblemList
} {
  if (text.length > MAX_TEXT_BYTES && isJsonText(text)) return parseJsonDocument(text)
  const { document, problems } = parseYaml(text)
  if (document === null) return { root: null, problems }
  const reader = new DocumentReader(problems)
  return { root: document.contents === null ? emptyAt(0) : reader.read(document.contents, null, 1), problems }
}

function emptyAt(offset: number): DocScalar {
  return { kind: 'scalar', value: null, offset, size: 1, height: 0 }
}

function brokenAt(offset: number): DocBroken {
  return { kind: 'broken', offset, size: 1, height: 0 }
}

/** Recursion is bounded: `yaml-syntax.ts` limits the depth of the text; aliases are limited here. */
class DocumentReader {
  readonly #problems: ProblemList
  readonly #anchors = new Map<string, DocNode>()
  readonly #unfinished = new Set<string>()
  #aliases = 0
  #aliasedValues = 0

  constructor(problems: ProblemList) {
    this.#problems = problems
  }

  read(node: ParsedNode, path: Path | null, depth: number): DocNode {
    if (isAlias(node)) return this.#readAlias(node, path, depth)
    const anchor = node.anchor
    if (anchor !== undefined) this.#unfinished.add(anchor)
    const read = this.#readValue(node, path, depth)
    if (anchor !== undefined) {
      this.#unfinished.delete(anchor)
      this.#anchors.set(anchor, read)
    }
    return read
  }

  #readValue(node: Exclude<ParsedNode, Alias.Parsed>, path: Path | null, depth: number): DocNode {
    if (isSeq(node)) return this.#readList(node, path, depth)
    if (isMap(node)) return this.#readMap(node, path, depth)
    const offset = node.range[0]
    const value: unknown = node.value
    if (
      value === null ||
      typeof value === 'string' ||
      typeof value === 'number' ||
      typeof value === 'boolean'
    ) {
      return { kind: 'scalar', value, offset, size: 1, height: 0 }
    }
    this.#problems.add(offset, path, 'is a kind of value that a scenario has no use for')
    return brokenAt(offset)
  }

  #readAlias(alias: Alias.Parsed, path: Path | null, depth: number): DocNode {
    const offset = alias.range[0]
    const refuse = (detail: string): DocNode => {
      this.#problems.add(offset, path, detail)
      return brokenAt(offset)
    }
    if (this.#unfinished.has(alias.source))
      return refuse(`*${alias.source} lies inside of what it stands for`)
    const target = this.#anchors.get(alias.source)
    if (target === undefined) return refuse(`no anchor &${alias.source} stands before *${alias.source}`)
    this.#aliases++
    this.#aliasedValues += target.size
    if (this.#aliases > MAX_ALIASES) return refuse(`a scenario may have at most ${MAX_ALIASES} aliases`)
    if (this.#aliasedValues > MAX_ALIASED_VALUES)
      return refuse(`aliases may stand for at most ${MAX_ALIASED_VALUES} values in all`)
    if (depth - 1 + target.height > MAX_DEPTH)
      return refuse(`lists and maps may be nested at most ${MAX_DEPTH} deep, aliases included`)
    return target
  }

  #readList(list: YAMLSeq.Parsed, path: Path | null, depth: number): DocList {
    const items = list.items.map((item, key) => this.read(item, { parent: path, key }, depth + 1))
    return { kind: 'list', items, offset: list.range[0], ...extentOf(items) }
  }

  #readMap(map: YAMLMap.Parsed, path: Path | null, depth: number): DocMap {
    const entries = new Map<string, DocEntry>()
    for (const pair of map.items as ReadonlyArray<Pair<ParsedNode, ParsedNode | null>>) {
      const keyOffset = pair.key.range[0]
      const key = keyText(pair.key)
      const keyPath = { parent: path, key: key ?? '?' }
      const problem = key === null ? 'a key must be a name or a number' : keyProblem(key, entries)
      if (problem !== null) this.#problems.add(keyOffset, keyPath, problem)
      const value = pair.value === null ? emptyAt(keyOffset) : this.read(pair.value, keyPath, depth + 1)
      if (problem === null) entries.set(key!, { keyOffset, value })
    }
    return {
      kind: 'map',
      entries,
      offset: map.range[0],
      ...extentOf([...entries.values()].map((entry) => entry.value)),
    }
  }
}

/** Returns the key as written (`1` is the text 1), or null for a list, map, alias or empty key. */
function keyText(key: ParsedNode): string | null {
  if (!isScalar(key) || key.value === null) return null
  return typeof key.value === 'string' ? key.value : String(key.source ?? key.value)
}

function keyProblem(key: string, seen: ReadonlyMap<string, DocEntry>): string | null {
  if (FORBIDDEN_KEYS.has(key)) return 'is not a name that a key may have'
  if (seen.has(key)) return 'stands here for the second time; a key stands once in a map'
  if (key === '<<') return 'merging maps with << is not part of YAML 1.2; an alias stands for a whole value'
  return null
}

function extentOf(values: readonly DocNode[]): { readonly size: number; readonly height: number } {
  let size = 1
  let height = 0
  for (const value of values) {
    size += value.size
    height = Math.max(height, value.height)
  }
  return { size, height: height + 1 }
}
