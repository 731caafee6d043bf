/**
 * A large scenario file that is JSON (a snapshot of a cluster) as the checker walks it. JSON is YAML, but a
 * YAML parser takes a hundred times as long; what is given up for that are places in the text: problems name
 * the field alone.
 */
import type { DocEntry, DocNode } from './doc-node.ts'
import { type Path, ProblemList } from './problem.ts'
import { MAX_DEPTH } from './yaml-syntax.ts'

/** 64 MiB. */
export const MAX_JSON_BYTES = 67_108_864
/** Values in all, or commas and brackets, whichever is more: some 100,000 tasks. */
const MAX_JSON_VALUES = 6_000_000
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** A text that is meant to be JSON. */
export function isJsonText(text: string): boolean {
  return /^\s{0,64}\{/.test(text)
}

/**
 * The root, or null when the text is not JSON or too large. A key that comes twice in a map has its last
 * value.
 */
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

/** Commas and opening brackets, those in texts included: no fewer than its values. */
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
    problems.add(0, path, `lists and maps may lie at most ${MAX_DEPTH} deep in each other`)
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
    if (FORBIDDEN_KEYS.has(key)) problems.add(0, keyPath, 'is no name that a key may have')
    else
      entries.set(key, {
        keyOffset: 0,
        value: nodeOf((value as Record<string, unknown>)[key], keyPath, depth + 1, problems),
      })
  }
  return { kind: 'map', entries, ...NOWHERE }
}

/** Of aliases alone sizes and heights are asked for, and JSON has none. */
const NOWHERE = { offset: 0, size: 1, height: 0 }
