/**
 * Overrides of scenario fields by dotted path: `config.idle_swap_out_seconds`, `fleet.0.count`,
 * `workload.1.rate_per_hour`. They are applied before the document is checked, so the schema validates them
 * like the file.
 */
import type { DocEntry, DocList, DocMap, DocNode, DocScalar } from './doc-node.ts'
import type { Path, ProblemList } from './problem.ts'

export type OverrideValue = number | string | boolean | null

export interface Override {
  /** Dotted path; numbers are list indexes from 0. */
  readonly field: string
  readonly value: OverrideValue
}

/**
 * Parts that a comparison may vary. Seeds have their own option; assertions and operators cannot be varied.
 */
const PARTS = ['config', 'fleet', 'workload', 'clock'] as const
const MAX_DEPTH = 16

/**
 * Returns the document with the overrides applied. Reports an override that cannot be applied where its path
 * leaves the document.
 */
export function overridden(root: DocNode, overrides: readonly Override[], problems: ProblemList): DocNode {
  let changed = root
  for (const override of overrides) changed = withOverride(changed, override, problems)
  return changed
}

/** Parses `300` as a number, `10m` and `40Gi` as text, and `null`, `true` and `false` as themselves. */
export function overrideValue(text: string): OverrideValue {
  if (text === 'null') return null
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}

/** Returns null if the path may be overridden, else the problem. */
export function overrideFieldProblem(field: string): string | null {
  const keys = field.split('.')
  if (!PARTS.some((part) => part === keys[0]))
    return `${field} is not a field that may be set: fields of ${PARTS.join(', ')} may be`
  if (keys.length < 2 || keys.some((key) => key === ''))
    return `${field} names no field: write it like fleet.0.count or config.idle_swap_out_seconds`
  return keys.length > MAX_DEPTH ? `${field} is deeper than any field` : null
}

function withOverride(root: DocNode, { field, value }: Override, problems: ProblemList): DocNode {
  const problem = overrideFieldProblem(field)
  if (problem === null) return put(root, field.split('.'), value, null, problems)
  problems.add(root.offset, null, problem)
  return root
}

function put(
  node: DocNode,
  keys: readonly string[],
  value: OverrideValue,
  path: Path | null,
  problems: ProblemList,
): DocNode {
  const [key, ...rest] = keys
  if (key === undefined) return scalar(value, node.offset)
  if (node.kind === 'map') return putIntoMap(node, key, rest, value, path, problems)
  if (node.kind === 'list') return putIntoList(node, key, rest, value, path, problems)
  // The old value is a scalar or absent: a nested field turns it into a record.
  return putIntoMap(
    { kind: 'map', entries: new Map(), offset: node.offset, size: 1, height: 1 },
    key,
    rest,
    value,
    path,
    problems,
  )
}

function putIntoMap(
  map: DocMap,
  key: string,
  rest: readonly string[],
  value: OverrideValue,
  parent: Path | null,
  problems: ProblemList,
): DocNode {
  const before: DocEntry = map.entries.get(key) ?? { keyOffset: map.offset, value: scalar(null, map.offset) }
  const after = put(before.value, rest, value, { parent, key }, problems)
  return { ...map, entries: new Map([...map.entries, [key, { ...before, value: after }]]) }
}

function putIntoList(
  list: DocList,
  key: string,
  rest: readonly string[],
  value: OverrideValue,
  parent: Path | null,
  problems: ProblemList,
): DocNode {
  const index = /^\d{1,9}$/.test(key) ? Number(key) : NaN
  const before = list.items[index]
  if (before === undefined) {
    problems.add(
      list.offset,
      parent,
      `has ${list.items.length} ${list.items.length === 1 ? 'entry' : 'entries'}, numbered from ` +
        `0; there is no ${key}`,
    )
    return list
  }
  const after = put(before, rest, value, { parent, key: index }, problems)
  return { ...list, items: list.items.map((item, i) => (i === index ? after : item)) }
}

function scalar(value: OverrideValue, offset: number): DocScalar {
  return { kind: 'scalar', value, offset, size: 1, height: 0 }
}
