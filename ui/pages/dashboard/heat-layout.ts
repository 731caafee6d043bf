/** Places of the cells of a map: the GPUs of a node side by side, the nodes in rows. Pure. */

export interface HeatCell {
  readonly x: number
  readonly y: number
}

export interface HeatLayout {
  readonly cells: readonly HeatCell[]
  readonly size: number
  readonly height: number
  /** Names above the nodes, where there is room. */
  readonly names: readonly { readonly text: string; readonly x: number; readonly y: number }[]
}

interface Placed {
  readonly nodeId: string
  readonly nodeName: string
}

/** Largest first: the first whose map is at most MAX_HEIGHT high is taken. */
const SIZES = [44, 34, 26, 20, 15, 11, 8, 6]
const MAX_HEIGHT = 360
const LABELLED_FROM = 26
const LABEL_HEIGHT = 16
const BETWEEN_CELLS = 2
const BETWEEN_NODES = 12

export function heatLayout(gpus: readonly Placed[], width: number): HeatLayout {
  for (const size of SIZES) {
    const layout = layoutOf(gpus, width, size)
    if (layout.height <= MAX_HEIGHT || size === SIZES.at(-1)) return layout
  }
  throw new Error('no cell size is available')
}

function layoutOf(gpus: readonly Placed[], width: number, size: number): HeatLayout {
  const isLabelled = size >= LABELLED_FROM
  const gap = isLabelled ? BETWEEN_NODES : size >= 11 ? 4 : 0
  const step = size + (size >= 11 ? BETWEEN_CELLS : 1)
  const rowHeight = step + (isLabelled ? LABEL_HEIGHT + 6 : gap)
  const cells: HeatCell[] = []
  const names: { text: string; x: number; y: number }[] = []
  let [x, y] = [0, 0]
  for (let first = 0; first < gpus.length;) {
    let end = first
    while (end < gpus.length && gpus[end]?.nodeId === gpus[first]?.nodeId) end += 1
    // Small cells fill their rows; the cells of a node stay together where it is shown by itself.
    if (gap > 0 && x > 0 && x + (end - first) * step > width) [x, y] = [0, y + rowHeight]
    if (isLabelled) names.push({ text: gpus[first]?.nodeName ?? '', x, y })
    for (let at = first; at < end; at++) {
      if (x > 0 && x + step > width) [x, y] = [0, y + rowHeight]
      cells.push({ x, y: y + (isLabelled ? LABEL_HEIGHT : 0) })
      x += step
    }
    x += gap
    first = end
  }
  return { cells, size, height: y + rowHeight, names }
}

/** The cell that a key moves to; null: another key. */
export function cellAfter(key: string, at: number | null, { cells }: HeatLayout): number | null {
  if (cells.length === 0) return null
  if (at === null) return /^(Arrow|Home|End)/.test(key) ? 0 : null
  if (key === 'ArrowRight') return Math.min(cells.length - 1, at + 1)
  if (key === 'ArrowLeft') return Math.max(0, at - 1)
  if (key === 'Home') return 0
  if (key === 'End') return cells.length - 1
  if (key !== 'ArrowDown' && key !== 'ArrowUp') return null
  const from = cells[at] as HeatCell
  const rows = [...new Set(cells.map(({ y }) => y))]
  const row = rows[rows.indexOf(from.y) + (key === 'ArrowDown' ? 1 : -1)]
  if (row === undefined) return at
  let best = at
  let distance = Infinity
  cells.forEach((cell, index) => {
    const apart = Math.abs(cell.x - from.x)
    if (cell.y === row && apart < distance) [best, distance] = [index, apart]
  })
  return best
}

/** The cell at a point; null: none. */
export function cellAt(x: number, y: number, { cells, size }: HeatLayout): number | null {
  const at = cells.findIndex(
    (cell) => x >= cell.x && x < cell.x + size + 1 && y >= cell.y && y < cell.y + size + 1,
  )
  return at < 0 ? null : at
}
