/**
 * A line chart over the overcommit percentage, as SVG, so that it shows where scripts are not allowed;
 * otherwise chart-script.ts reads the table below it and redraws it. Lines differ in colour and dash.
 */
import { type Axis, axisOf } from './axis.ts'
import { dataBlock, markup, type Markup } from './markup.ts'
import type { SharedMarks } from './shared-marks.ts'

export interface ChartPoint {
  readonly x: number
  readonly y: number
  /** Band around the line. */
  readonly low?: number
  readonly high?: number
}

export interface ChartLine {
  readonly name: string
  /** By increasing x. */
  readonly points: readonly ChartPoint[]
}

export interface LineChart {
  readonly title: string
  readonly unit: string
  readonly xTitle: string
  /** At most LINES. */
  readonly lines: readonly ChartLine[]
  /** Upper limits. */
  readonly limits: ReadonlyArray<{ readonly y: number; readonly label: string }>
  /** Marks on the x axis. */
  readonly marks: ReadonlyArray<{ readonly x: number; readonly label: string }>
}

/** Number of colours. */
const LINES = 4
const [WIDTH, HEIGHT] = [720, 300]
const PLOT = { left: 64, right: 16, top: 20, bottom: 44 }

interface Frame {
  readonly x: Axis
  readonly y: Axis
  readonly atX: (value: number) => string
  readonly atY: (value: number) => string
  /** A line through points of the plot, as the `d` of a path. */
  readonly through: (places: ReadonlyArray<readonly [x: number, y: number]>) => string
}

/** Markers of the lines, once for all charts of a page. */
export const DOTS = markup`${Array.from(
  { length: LINES },
  (_, i) =>
    markup`<marker id="dot${i}" class="d${i}" viewBox="-4 -4 8 8" markerWidth="8" markerHeight="8"
      markerUnits="userSpaceOnUse"><circle r="3.5" /></marker>`,
)}`

/**
 * @param table of the same values, as chart-script.ts reads it: the percentage, then for each line its value,
 *   p10, p90 and p95
 */
export function lineChart(chart: LineChart, table: Markup, shared: SharedMarks): Markup {
  const frame = frameOf(chart)
  return markup`<figure class="chart">
    <figcaption>${chart.title}, ${chart.unit}</figcaption>
    <div class="plot"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="as the table below">
      ${shared.use(xGridOf(frame, chart))}${shared.use(yGridOf(frame, chart))}
      ${chart.limits.map((limit) => limitOf(frame, limit))}
      ${chart.marks.map((mark, i) => shared.use(markOf(frame, mark, i)))}
      ${chart.lines.map((line, i) => lineOf(frame, line, i))}
    </svg></div>
    ${dataBlock({ unit: chart.unit, limits: chart.limits, marks: chart.marks })}
    <ul class="legend">
      ${chart.lines.map(
        ({ name }, i) =>
          markup`<li><svg viewBox="0 0 24 8" class="key">${shared.use(keyOf(i))}</svg>${name}</li>`,
      )}
    </ul>
    ${table}
  </figure>`
}

/** The line of a legend. */
function keyOf(index: number): Markup {
  return markup`<line class="line l${index}" x1="0" y1="4" x2="24" y2="4" />`
}

function frameOf({ lines, limits }: LineChart): Frame {
  const points = lines.flatMap((line) => line.points)
  const x = axisOf(points.map((point) => point.x))
  const y = axisOf([
    ...points.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]),
    ...limits.map((limit) => limit.y),
  ])
  const place = (axis: Axis, value: number, from: number, to: number): number =>
    Math.round(10 * (from + ((value - axis.from) / (axis.to - axis.from)) * (to - from)))
  const placeX = (value: number): number => place(x, value, PLOT.left, WIDTH - PLOT.right)
  const placeY = (value: number): number => place(y, value, HEIGHT - PLOT.bottom, PLOT.top)
  return {
    x,
    y,
    atX: (value) => tenths(placeX(value)),
    atY: (value) => tenths(placeY(value)),
    through: (places) => pathThrough(places.map(([atX, atY]) => [placeX(atX), placeY(atY)])),
  }
}

/** 640 → `64`, 1045 → `104.5`. */
function tenths(value: number): string {
  return String(value / 10)
}

/**
 * Relative steps, which are shorter to write.
 * @param places in tenths, so that the steps add up
 */
function pathThrough(places: ReadonlyArray<readonly [number, number]>): string {
  const steps = places.map(([x, y], i) => {
    const [beforeX, beforeY] = places[i - 1] ?? [0, 0]
    return `${tenths(x - beforeX)} ${tenths(y - beforeY)}`
  })
  const [start = '', ...rest] = steps
  return `M${start}${rest.length === 0 ? 'h0' : `l${rest.join(' ')}`}`.replaceAll(' -', '-')
}

function xGridOf({ x, atX }: Frame, { xTitle }: LineChart): Markup {
  const [top, bottom] = [PLOT.top, HEIGHT - PLOT.bottom]
  const grid = x.ticks.map((tick) => `M${atX(tick)} ${top}V${bottom}`).join('')
  return markup`<path class="grid" d="${grid}" />${x.ticks.map(
    (tick) =>
      markup`<text class="tick middle" x="${atX(tick)}" y="${bottom + 16}">${tick.toFixed(x.digits)}</text>`,
  )}<text class="tick middle" x="${(PLOT.left + WIDTH - PLOT.right) / 2}" y="${HEIGHT - 6}">${xTitle}</text>`
}

function yGridOf({ y, atY }: Frame, { unit }: LineChart): Markup {
  const [left, right] = [PLOT.left, WIDTH - PLOT.right]
  const grid = y.ticks.map((tick) => `M${left} ${atY(tick)}H${right}`).join('')
  return markup`<path class="grid" d="${grid}" />${y.ticks.map(
    (tick) =>
      markup`<text class="tick end" x="${left - 8}" y="${atY(tick)}" dy="4">${tick.toFixed(y.digits)}</text>`,
  )}<text class="tick" x="4" y="12">${unit}</text>`
}

function limitOf({ atY }: Frame, { y, label }: LineChart['limits'][number]): Markup {
  const [left, right] = [PLOT.left, WIDTH - PLOT.right]
  return markup`<line class="limit" x1="${left}" x2="${right}" y1="${atY(y)}" y2="${atY(y)}" />
    <text class="note" x="${left + 6}" y="${atY(y)}" dy="-4">${label}</text>`
}

/** Two marks at one x are written one below the other. */
function markOf({ atX }: Frame, { x, label }: LineChart['marks'][number], row: number): Markup {
  const [top, bottom] = [PLOT.top, HEIGHT - PLOT.bottom]
  return markup`<line class="mark m${row}" x1="${atX(x)}" x2="${atX(x)}" y1="${top}" y2="${bottom}" />
    <text class="note middle" x="${atX(x)}" y="${top + 10 + row * 14}">${label}</text>`
}

function lineOf(frame: Frame, { points }: ChartLine, index: number): Markup {
  const d = frame.through(points.map(({ x, y }) => [x, y]))
  return markup`${bandOf(frame, points, index)}<path class="line l${index}" d="${d}" />`
}

function bandOf({ through }: Frame, points: readonly ChartPoint[], index: number): Markup | null {
  if (points.length === 0 || points.some(({ low, high }) => low === undefined || high === undefined))
    return null
  const upper = points.map(({ x, high = 0 }) => [x, high] as const)
  const lower = points.map(({ x, low = 0 }) => [x, low] as const)
  return markup`<path class="band b${index}" d="${through([...upper, ...lower.toReversed()])}z" />`
}
