/** Nodes in an order of their own figures, a page at a time. */
import { hasCondition, needsAttention } from '../../model/node-conditions.ts'
import type { Node } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import { invalidCursor, readCursorParts, writeCursorParts } from '../http/cursor.ts'
import { canonicalId } from '../http/names.ts'
import type { NodeQuery, NodeSort } from './schema.ts'

export type NodeOrder = 'asc' | 'desc'

type Key = readonly (number | string)[]
type KeyOf = (node: Node, views: Pick<Views, 'nodeSwaps'>) => Key

/**
 * What an order compares, the first difference decides; then registration, so that each order is total. load:
 * entries that wait for bytes there, then `allocated`. allocated: share of the commit limit that is promised.
 * used: share of physical VRAM that is held. swaps: swap-outs and swap-ins since the controller started.
 */
const KEYS: Readonly<Record<NodeSort, KeyOf>> = {
  registered: () => [],
  name: ({ name }) => [name],
  load: (node) => [node.queue.length, allocatedShare(node)],
  allocated: (node) => [allocatedShare(node)],
  used: (node) => [usedShare(node)],
  swaps: (node, views) => {
    const { swapOuts, swapIns } = views.nodeSwaps(node)
    return [swapOuts + swapIns]
  },
}

export interface NodePageRequest {
  readonly sort: NodeSort
  /** null: as people ask for it first: names upwards, figures downwards. */
  readonly order: NodeOrder | null
  readonly cursor: string | null
}

export interface SortedNodes {
  /** After the cursor, in order. */
  readonly rest: readonly Node[]
  /** How many match, on all pages. */
  readonly total: number
  /** Where the page after this node begins. */
  cursorAfter(node: Node): string
}

/** @throws ApiProblem when the cursor is invalid, or belongs to another order. */
export function sortedNodes(
  views: Views,
  filter: Pick<NodeQuery, 'status' | 'group' | 'q'>,
  page: NodePageRequest,
): SortedNodes {
  const { sort } = page
  const order = page.order ?? (sort === 'registered' || sort === 'name' ? 'asc' : 'desc')
  const keyed = [...views.nodes()]
    .filter((node) => matches(node, filter))
    .map((node) => ({ node, key: KEYS[sort](node, views) }))
  const sign = order === 'asc' ? 1 : -1
  const compare = (a: Place, b: Place): number => sign * (byKey(a.key, b.key) || a.ordinal - b.ordinal)
  const places = keyed.map(({ node, key }) => ({ node, key, ordinal: node.ordinal })).sort(compare)
  const after = page.cursor === null ? null : readPlace(page.cursor, sort, order)
  const rest = after === null ? places : places.filter((place) => compare(place, after) > 0)
  return {
    rest: rest.map(({ node }) => node),
    total: places.length,
    cursorAfter: (node) => writePlace(sort, order, { key: KEYS[sort](node, views), ordinal: node.ordinal }),
  }
}

function matches(node: Node, { status, group, q }: Pick<NodeQuery, 'status' | 'group' | 'q'>): boolean {
  return (
    (status === undefined || hasStatus(node, status)) &&
    (group === undefined || node.groups.includes(group)) &&
    (q === undefined || node.name.includes(q) || node.id === canonicalId(q))
  )
}

function hasStatus(node: Node, status: NonNullable<NodeQuery['status']>): boolean {
  if (status === 'up' || status === 'suspect' || status === 'unreachable') return node.status === status
  return status === 'attention' ? needsAttention(node) : hasCondition(node, status)
}

/** Of the commit limit, which may be 0 while something is promised. */
function allocatedShare({ gpus }: Node): number {
  const limit = gpus.reduce((sum, gpu) => sum + gpu.limitMib, 0)
  const committed = gpus.reduce((sum, gpu) => sum + gpu.noswapMib + gpu.swappableMib, 0)
  return committed / Math.max(1, limit)
}

function usedShare({ gpus }: Node): number {
  const physical = gpus.reduce((sum, gpu) => sum + gpu.physicalMib, 0)
  const used = gpus.reduce(
    (sum, gpu) => sum + gpu.noswapResidentMib + gpu.swappableResidentMib + gpu.foreignMib,
    0,
  )
  return physical === 0 ? 0 : used / physical
}

// ── places in an order, and cursors ───────────────────────────────────────────

interface Place {
  readonly key: Key
  readonly ordinal: number
}

/** Keys of one order have the same length and types. */
function byKey(a: Key, b: Key): number {
  for (const [i, one] of a.entries()) {
    const other = b[i] as number | string
    if (one !== other) return one < other ? -1 : 1
  }
  return 0
}

function writePlace(sort: NodeSort, order: NodeOrder, { key, ordinal }: Place): string {
  return writeCursorParts([sort, order, ordinal, ...key])
}

const KEY_TYPES: Readonly<Record<NodeSort, readonly string[]>> = {
  registered: [],
  name: ['string'],
  load: ['number', 'number'],
  allocated: ['number'],
  used: ['number'],
  swaps: ['number'],
}

function readPlace(cursor: string, sort: NodeSort, order: NodeOrder): Place {
  const [ofSort, ofOrder, ordinal, ...key] = readCursorParts(cursor)
  const types = KEY_TYPES[sort]
  const isKey = key.length === types.length && key.every((part, i) => typeof part === types[i])
  if (ofSort !== sort || ofOrder !== order || !Number.isSafeInteger(ordinal) || !isKey) throw invalidCursor()
  return { key: key as Key, ordinal: ordinal as number }
}
