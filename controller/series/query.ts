/**
 * Columns over time: selects the resolution for a range, and merges its intervals into the requested points.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { COLUMN, COLUMNS, type ColumnName } from './columns.ts'
import { MEASURES, placesOf, type Measure, type MeasureName } from './measures.ts'
import { SLOT_MS, type TableKind } from './retention.ts'
import { addColumn, type Row } from './row.ts'
import type { Tables } from './node-sampler.ts'
import { CLUSTER_KEY } from './sampler.ts'
import type { SeriesTable } from './table.ts'

export interface ScopeRef {
  readonly kind: TableKind
  /** A group's name, a node's id, `<node id>/<index>` of a GPU; `cluster`. */
  readonly key: string
}

export interface SeriesQuery {
  readonly names: readonly MeasureName[]
  readonly scopes: readonly ScopeRef[]
  readonly from: Instant
  readonly to: Instant
  readonly maxPoints: number
}

/** A grid of intervals: point i begins at `from` + i × `stepMs`. */
export interface Grid {
  /** The resolution that serves it: an index in SLOT_MS. */
  readonly tier: number
  readonly from: Instant
  readonly stepMs: DurationMs
  readonly points: number
}

export interface SeriesColumn {
  readonly scope: ScopeRef
  readonly name: MeasureName
  readonly values: readonly (number | null)[]
}

/**
 * 1. The coarsest resolution with at least as many intervals as requested points; otherwise the finest.
 * 2. A coarser one if it reaches further back into the range: the finer one has dropped that part.
 * 3. Whole intervals are merged so that there are no more points than requested. Points are multiples of
 *    their step, so that a moving range changes no point but the last.
 */
export function gridOf(tables: Tables, { scopes, from, to, maxPoints }: SeriesQuery): Grid {
  let tier = 0
  while (tier + 1 < SLOT_MS.length && to - from >= (SLOT_MS[tier + 1] as number) * maxPoints) tier += 1
  const kinds = new Set(scopes.map(({ kind }) => kind))
  for (const kind of kinds) tier = Math.max(tier, tierReaching(tables[kind], tier, from, to))
  return { tier, ...stepsOf(SLOT_MS[tier] as number, from, to, maxPoints) }
}

/**
 * The shortest step of whole intervals whose multiples cover the range with this number of points; a single
 * point is aligned with the range.
 */
function stepsOf(slotMs: DurationMs, from: Instant, to: Instant, maxPoints: number): Omit<Grid, 'tier'> {
  const slots = Math.ceil(to / slotMs) - Math.floor(from / slotMs)
  if (maxPoints === 1) return { from: Math.floor(from / slotMs) * slotMs, stepMs: slots * slotMs, points: 1 }
  const shortest = Math.ceil(slots / maxPoints)
  for (let merged = shortest; merged < shortest + STEPS_TRIED; merged++) {
    const grid = gridBy(merged * slotMs, from, to)
    if (grid.points <= maxPoints) return grid
  }
  // Multiples of a step may cut the range into one piece more than its length suggests.
  return gridBy(Math.ceil(slots / (maxPoints - 1)) * slotMs, from, to)
}

function gridBy(stepMs: DurationMs, from: Instant, to: Instant): Omit<Grid, 'tier'> {
  const first = Math.floor(from / stepMs)
  return { from: first * stepMs, stepMs, points: Math.ceil(to / stepMs) - first }
}

const STEPS_TRIED = 8

/** A single point over the last `ms`: whole intervals, so it may begin up to one interval earlier. */
export function recentGrid(tables: Tables, kind: TableKind, to: Instant, ms: DurationMs): Grid {
  const tier = tierReaching(tables[kind], 0, to - ms, to)
  const slotMs = SLOT_MS[tier] as number
  const from = Math.floor((to - ms) / slotMs) * slotMs
  return { tier, from, stepMs: Math.ceil(to / slotMs) * slotMs - from, points: 1 }
}

function tierReaching(table: SeriesTable, tier: number, from: Instant, to: Instant): number {
  let best = tier
  for (let coarser = tier + 1; coarser < SLOT_MS.length; coarser++) {
    const oldest = table.tiers[coarser]?.first
    if (oldest === undefined || oldest.at >= to) continue
    const finest = table.tiers[best]?.first
    const reachesTo = oldest.at + (SLOT_MS[coarser] as number)
    if (finest === undefined ? reachesTo > from : reachesTo <= finest.at && finest.at > from) best = coarser
  }
  return best
}

/** One column per scope and name, scope by scope. */
export function readSeries(tables: Tables, query: SeriesQuery, grid: Grid): readonly SeriesColumn[] {
  const columns = columnsOf(query.names)
  const byKind = new Map<TableKind, ScopeRef[]>()
  for (const scope of query.scopes) byKind.set(scope.kind, [...(byKind.get(scope.kind) ?? []), scope])
  const sums = new Map<ScopeRef, ScopeSums>()
  for (const [kind, scopes] of byKind) sumScopes(tables[kind], scopes, columns, grid, sums)
  return query.scopes.flatMap((scope) =>
    query.names.map((name) => ({
      scope,
      name,
      values: valuesOf(MEASURES[name], sums.get(scope) as ScopeSums, grid.points),
    })),
  )
}

/** The columns needed for the names, each once. */
function columnsOf(names: readonly MeasureName[]): readonly number[] {
  return [...new Set(names.flatMap((name) => placesOf(MEASURES[name].columns as readonly ColumnName[])))]
}

/**
 * Position of the sums of a scope: point and column are at `start + point × pointStride +
 * columnStart[column]`.
 */
interface ScopeSums {
  readonly sums: Float64Array
  readonly start: number
  readonly pointStride: number
  readonly columnStart: Int32Array
}

function sumScopes(
  table: SeriesTable,
  scopes: readonly ScopeRef[],
  columns: readonly number[],
  { tier, from, stepMs, points }: Grid,
  into: Map<ScopeRef, ScopeSums>,
): void {
  const pointStride = columns.length * scopes.length
  const sums = new Float64Array(points * pointStride)
  const columnStart = new Int32Array(COLUMNS).fill(-1)
  columns.forEach((column, place) => (columnStart[column] = place * scopes.length))
  const known = scopes.map(({ key }) => table.scopes.get(key))
  const indexes = Int32Array.from(known, (scope) => scope?.index ?? -1)
  const youngest = known.reduce((latest, scope) => Math.max(latest, scope?.since ?? -Infinity), -Infinity)
  const slotMs = SLOT_MS[tier] as number
  for (const row of rowsOf(table, tier, from, from + points * stepMs)) {
    const end = row.at + slotMs
    // Another scope may have had the index before.
    const own =
      end > youngest ? indexes : indexes.map((index, i) => (end > (known[i]?.since ?? 0) ? index : -1))
    const offset = Math.floor((row.at - from) / stepMs) * pointStride
    for (const column of columns) addColumn(row, column, own, sums, offset + (columnStart[column] as number))
  }
  scopes.forEach((scope, start) => into.set(scope, { sums, start, pointStride, columnStart }))
}

function* rowsOf(table: SeriesTable, tier: number, from: Instant, to: Instant): Generator<Row> {
  yield* table.tiers[tier]?.rows(from, to) ?? []
  const openAt = table.openAt(tier)
  if (openAt === null || openAt < from || openAt >= to) return
  const open = table.openRow(tier)
  if (open !== null) yield open
}

function valuesOf(
  measure: Measure,
  { sums, start, pointStride, columnStart }: ScopeSums,
  points: number,
): (number | null)[] {
  const values: (number | null)[] = []
  let base = start
  const read = (column: ColumnName): number => sums[base + (columnStart[COLUMN[column]] as number)] as number
  for (let point = 0; point < points; point++, base += pointStride) values.push(measure.of(read))
  return values
}

export const CLUSTER: ScopeRef = { kind: 'cluster', key: CLUSTER_KEY }
