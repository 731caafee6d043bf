/** The layout of a Gantt chart: a row for each GPU, with a lane for each of its concurrent tasks. Pure. */

/** `unknown`: placed, but no retained event says where its bytes were. */
export type BarKind = 'active' | 'idle' | 'moving' | 'out' | 'unknown'

export interface GanttBar {
  /** Index of the row. */
  readonly row: number
  /** Bars with the same key share a lane: a task keeps its lane. */
  readonly laneKey: string
  /** Milliseconds since the epoch. */
  readonly from: number
  readonly to: number
  readonly kind: BarKind
}

export interface GanttFrame {
  readonly from: number
  readonly to: number
  /** CSS pixels. */
  readonly width: number
  readonly rowCount: number
}

export interface GanttLayout {
  readonly x: Float32Array
  readonly y: Float32Array
  readonly w: Float32Array
  readonly rowTops: readonly number[]
  readonly height: number
}

export const LANE_PX = 16
const ROW_GAP_PX = 8
/** Narrower bars could be neither seen nor clicked. */
const MIN_BAR_PX = 1

export function layoutGantt(
  bars: readonly GanttBar[],
  { from, to, width, rowCount }: GanttFrame,
): GanttLayout {
  const lanes = lanesOf(bars, rowCount)
  const rowTops: number[] = []
  let height = 0
  for (let row = 0; row < rowCount; row++) {
    rowTops.push(height)
    height += Math.max(1, lanes.counts[row] ?? 0) * LANE_PX + ROW_GAP_PX
  }
  const x = new Float32Array(bars.length)
  const y = new Float32Array(bars.length)
  const w = new Float32Array(bars.length)
  const scale = width / Math.max(1, to - from)
  bars.forEach((bar, at) => {
    const left = Math.max(0, (bar.from - from) * scale)
    const right = Math.min(width, (bar.to - from) * scale)
    x[at] = left
    w[at] = Math.max(MIN_BAR_PX, right - left)
    y[at] = (rowTops[bar.row] ?? 0) + (lanes.laneOf.get(keyOf(bar)) ?? 0) * LANE_PX
  })
  return { x, y, w, rowTops, height }
}

/** Returns the index of the topmost bar at a point, or null. */
export function barAt({ x, y, w }: GanttLayout, atX: number, atY: number): number | null {
  for (let at = x.length - 1; at >= 0; at--) {
    const left = x[at] as number
    const top = y[at] as number
    if (atX >= left && atX <= left + (w[at] as number) && atY >= top && atY < top + LANE_PX) return at
  }
  return null
}

function keyOf({ row, laneKey }: GanttBar): string {
  return `${row} ${laneKey}`
}

/** Each task takes the first lane that is free for all of its bars. */
function lanesOf(
  bars: readonly GanttBar[],
  rowCount: number,
): { readonly laneOf: ReadonlyMap<string, number>; readonly counts: readonly number[] } {
  const spans = new Map<string, { row: number; from: number; to: number }>()
  for (const bar of bars) {
    const stay = spans.get(keyOf(bar))
    if (stay === undefined) spans.set(keyOf(bar), { row: bar.row, from: bar.from, to: bar.to })
    else {
      stay.from = Math.min(stay.from, bar.from)
      stay.to = Math.max(stay.to, bar.to)
    }
  }
  const laneOf = new Map<string, number>()
  const ends: number[][] = Array.from({ length: rowCount }, () => [])
  for (const [key, { row, from, to }] of [...spans].sort(
    ([a, { from: x }], [b, { from: y }]) => x - y || (a < b ? -1 : 1),
  )) {
    const ofRow = (ends[row] ??= [])
    const free = ofRow.findIndex((end) => end <= from)
    const lane = free === -1 ? ofRow.length : free
    ofRow[lane] = to
    laneOf.set(key, lane)
  }
  return { laneOf, counts: ends.map((ofRow) => ofRow.length) }
}
