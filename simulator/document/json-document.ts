/**
 * A large JSON scenario (a snapshot of a cluster) for the checker. A YAML parser takes about a hundred times
 * as long. Problems name only the field, without a position in the text.
 */
import type { DocEntry, DocNode } from './doc-node.ts'
import { type Path, ProblemList } from './problem.ts'
import { MAX_DEPTH } from './yaml-syntax.ts'

/** 64 MiB. */
export const MAX_JSON_BYTES = 67_108_864
/** Maximum number of values, commas and brackets: about 100,000 tasks. */
const MAX_JSON_VALUES = 6_000_000
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** Returns true if the text appears to be JSON. */
export function isJsonText(text: string): boolean {
  return /^\s{0,64}\{/.test(text)
}

/** Returns the root, or null if the text is not JSON or too large. The last of duplicate keys applies. */
export function parseJsonDocument(text: string): {
  readonly root: DocNode | null
  readonly problems: ProblemList
} {
  const problems = new ProblemList(() => ({ line: 1, column: 1 }))
  const refuse = (detail: string): { readonly root: null; readonly problems: ProblemList } => {
    problems.add(0, null, detail)
    return { root: null, problems }
  }
  if (Buffer.byteLength(text) > MAX_JSON_BYTES) return refuse(`is larger than ${MAX_JSON_BYTES} bytes`)
  if (signsIn(text) > MAX_JSON_VALUES) return refuse(`may hold at most ${MAX_JSON_VALUES} values`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return refuse((error as Error).message)
  }
  const root = nodeOf(value, null, 1, problems)
  return problems.count > 0 ? { root: null, problems } : { root, problems }
}

/** Counts commas and opening brackets, including those in strings: an upper bound of the values. */
function signsIn(text: string): number {
  let signs = 1
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === COMMA || code === BRACKET || code === BRACE) signs++
  }
  return signs
}

const COMMA = 0x2c
const BRACKET = 0x5b
const BRACE = 0x7b

/** Recursion is bounded by MAX_DEPTH. */
function nodeOf(value: unknown, path: Path | null, depth: number, problems: ProblemList): DocNode {
  if (value === null || typeof value !== 'object') {
    return { kind: 'scalar', value: value as string | number | boolean | null, ...NOWHERE }
  }
  if (depth > MAX_DEPTH) {
    problems.add(0, path, `lists and maps may be nested at most ${MAX_DEPTH} deep`)
    return { kind: 'broken', ...NOWHERE }
  }
  if (Array.isArray(value)) {
    return {
      kind: 'list',
      items: value.map((item, key) => nodeOf(item, { parent: path, key }, depth + 1, problems)),
      ...NOWHERE,
    }
  }
  const entries = new Map<string, DocEntry>()
  for (const key of Object.keys(value)) {
    const keyPath = { parent: path, key }
    if (FORBIDDEN_KEYS.has(key)) problems.add(0, keyPath, 'is not a name that a key may have')
    else
      entries.set(key, {
        keyOffset: 0,
        value: nodeOf((value as Record<string, unknown>)[key], keyPath, depth + 1, problems),
      })
  }
  return { kind: 'map', entries, ...NOWHERE }
}

/** Sizes and heights are needed only for aliases, which JSON does not have. */
const NOWHERE = { offset: 0, size: 1, height: 0 }
