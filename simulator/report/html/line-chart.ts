/**
 * A chart of lines over the overcommit percentage, as SVG in the page, so that it shows where scripts are not allowed; where they are, chart-script.ts
 * takes its data and draws it again. Lines differ in colour and in dash; every point says its value on hovering.
 */
import { type Axis, axisOf } from './axis.ts'
import { dataBlock, markup, type Markup } from './markup.ts'

export interface ChartPoint {
  readonly x: number
  readonly y: number
  /** Of the band around it. */
  readonly low?: number
  readonly high?: number
}

export interface ChartLine {
  readonly name: string
  /** By rising x. */
  readonly points: readonly ChartPoint[]
}

export interface LineChart {
  readonly title: string
  readonly unit: string
  readonly xTitle: string
  /** At most LINES. */
  readonly lines: readonly ChartLine[]
  /** Levels to stay below. */
  readonly limits: ReadonlyArray<{ readonly y: number; readonly label: string }>
  /** Places on the x axis. */
  readonly marks: ReadonlyArray<{ readonly x: number; readonly label: string }>
}

/** There are so many colours. */
export const LINES = 4
const [WIDTH, HEIGHT] = [720, 300]
const PLOT = { left: 64, right: 16, top: 20, bottom: 44 }

interface Frame {
  readonly x: Axis
  readonly y: Axis
  readonly atX: (value: number) => string
  readonly atY: (value: number) => string
}

export function lineChart(chart: LineChart): Markup {
  const frame = frameOf(chart)
  return markup`<figure class="chart">
    <figcaption>${chart.title}</figcaption>
    <div class="plot"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${chart.title}">
      ${gridOf(frame, chart)}${chart.limits.map((limit) => limitOf(frame, limit))}${chart.marks.map((mark, i) => markOf(frame, mark, i))}${chart.lines.map(
        (line, i) => lineOf(frame, line, i, chart.unit),
      )}
    </svg></div>
    ${dataBlock(chart)}
    <ul class="legend">
      ${chart.lines.map(
        ({ name }, i) =>
          markup`<li>
            <svg viewBox="0 0 24 8" class="key"><line class="line l${i}" x1="0" y1="4" x2="24" y2="4" /></svg>${name}
          </li>`,
      )}
    </ul>
  </figure>`
}

function frameOf({ lines, limits }: LineChart): Frame {
  const points = lines.flatMap((line) => line.points)
  const x = axisOf(points.map((point) => point.x))
  const y = axisOf([
    ...points.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]),
    ...limits.map((limit) => limit.y),
  ])
  const place = (axis: Axis, value: number, from: number, to: number): string =>
    (from + ((value - axis.from) / (axis.to - axis.from)) * (to - from)).toFixed(1)
  return {
    x,
    y,
    atX: (value) => place(x, value, PLOT.left, WIDTH - PLOT.right),
    atY: (value) => place(y, value, HEIGHT - PLOT.bottom, PLOT.top),
  }
}

function gridOf({ x, y, atX, atY }: Frame, { unit, xTitle }: LineChart): Markup {
  return markup`${y.ticks.map(
    (tick) =>
      markup`<line class="grid" x1="${PLOT.left}" x2="${WIDTH - PLOT.right}" y1="${atY(tick)}" y2="${atY(tick)}" /><text class="tick end" x="${PLOT.left - 8}" y="${atY(tick)}" dy="4">${tick.toFixed(y.digits)}</text>`,
  )}${x.ticks.map(
    (tick) =>
      markup`<line class="grid" x1="${atX(tick)}" x2="${atX(tick)}" y1="${PLOT.top}" y2="${HEIGHT - PLOT.bottom}" /><text class="tick middle" x="${atX(tick)}" y="${HEIGHT - PLOT.bottom + 16}">${tick.toFixed(x.digits)}</text>`,
  )}<text class="tick middle" x="${(PLOT.left + WIDTH - PLOT.right) / 2}" y="${HEIGHT - 6}">${xTitle}</text><text class="tick" x="4" y="12">${unit}</text>`
}

function limitOf({ atY }: Frame, { y, label }: LineChart['limits'][number]): Markup {
  return markup`<line class="limit" x1="${PLOT.left}" x2="${WIDTH - PLOT.right}" y1="${atY(y)}" y2="${atY(y)}" /><text class="note" x="${PLOT.left + 6}" y="${atY(y)}" dy="-4">${label}</text>`
}

/** Two marks at one place stand one under the other. */
function markOf({ atX }: Frame, { x, label }: LineChart['marks'][number], row: number): Markup {
  return markup`<line class="mark m${row}" x1="${atX(x)}" x2="${atX(x)}" y1="${PLOT.top}" y2="${HEIGHT - PLOT.bottom}" /><text class="note middle" x="${atX(x)}" y="${PLOT.top + 10 + row * 14}">${label}</text>`
}

function lineOf({ atX, atY }: Frame, { name, points }: ChartLine, index: number, unit: string): Markup {
  const path = points.map(({ x, y }) => `${atX(x)},${atY(y)}`).join(' ')
  return markup`${bandOf(points, atX, atY, index)}<polyline class="line l${index}" points="${path}" />${points.map(
    ({ x, y }) =>
      markup`<circle class="dot d${index}" cx="${atX(x)}" cy="${atY(y)}" r="3.5"><title>${name}, ${x} %: ${y.toFixed(2)} ${unit}</title></circle>`,
  )}`
}

function bandOf(points: readonly ChartPoint[], atX: Frame['atX'], atY: Frame['atY'], index: number): Markup | null {
  if (points.some(({ low, high }) => low === undefined || high === undefined)) return null
  const upper = points.map(({ x, high = 0 }) => `${atX(x)},${atY(high)}`)
  const lower = points.map(({ x, low = 0 }) => `${atX(x)},${atY(low)}`)
  return markup`<polygon class="band b${index}" points="${[...upper, ...lower.toReversed()].join(' ')}" />`
}
