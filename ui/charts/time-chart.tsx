/** Lines over time: the newest data on the right, zoomed by dragging, with marks. */
import uPlot from 'uplot'
import { createMemo, type JSX } from 'solid-js'
import type { CsvCell } from '../format/csv.ts'
import { clockTime } from '../format/clock.ts'
import { zone } from '../state/zone.ts'
import { LineChart, type ColourOf, type LineKey, type PlotOptions } from './line-chart.tsx'

export interface ChartLine extends LineKey {
  /** Formats a value. */
  readonly format: (value: number | null) => string
  /** Drawn on top of the previous line. */
  readonly isStacked?: boolean
}

export interface ChartMark {
  readonly from: number
  readonly to: number
  readonly text: string
  readonly kind: string
}

export interface ChartProps {
  readonly name: string
  readonly lines: readonly ChartLine[]
  /** x in seconds since the epoch, then one column per line; null is a gap. */
  readonly data: readonly (readonly (number | null)[])[]
  readonly marks?: readonly ChartMark[]
  /** Charts with the same key share a cursor. */
  readonly syncKey?: string
  /** Upper end of the scale; omitted: from the data. */
  readonly max?: number
  /** Steps of the scale in ascending order; omitted: decimal steps. */
  readonly steps?: readonly number[]
  readonly height?: number
  readonly onZoom?: (range: { readonly from: number; readonly to: number } | null) => void
}

const HEIGHT = 180

export function TimeChart(props: ChartProps): JSX.Element {
  // Marks are drawn with the data.
  const data = createMemo(() => {
    void props.marks
    return columnsOf(props)
  })
  return (
    <LineChart
      name={props.name}
      keys={props.lines}
      data={data()}
      height={props.height ?? HEIGHT}
      optionsOf={(colourOf) => optionsOf(props, colourOf)}
      readout={(index) => readoutOf(props, index)}
      isLive
      onZoom={props.onZoom}
      head={['Time', ...props.lines.map(({ name }) => name)]}
      shown={() => rowsOf(props)}
      csv={() => csvRowsOf(props)}
    />
  )
}

const SHOWN_ROWS = 120

function rowsOf({ data, lines }: ChartProps): string[][] {
  const [x = [], ...columns] = data
  const rows = x.map((at, index) => [
    clockTime((at ?? 0) * 1000),
    ...lines.map((line, c) => line.format(columns[c]?.[index] ?? null)),
  ])
  return rows.slice(-SHOWN_ROWS).reverse()
}

function csvRowsOf({ data, lines }: ChartProps): CsvCell[][] {
  const [x = [], ...columns] = data
  const rows = x.map((at, index) => [
    new Date((at ?? 0) * 1000).toISOString(),
    ...columns.map((column) => column[index] ?? null),
  ])
  return [['time', ...lines.map(({ name }) => name)], ...rows]
}

function readoutOf({ data, lines }: ChartProps, at: number | null): string {
  const [x = [], ...columns] = data
  // The last point may be incomplete.
  const index = at ?? x.findLastIndex((_, i) => columns.some((column) => (column[i] ?? null) !== null))
  const time = x[index]
  if (time === undefined || time === null) return 'No data yet.'
  return (
    `${clockTime(time * 1000)}: ` +
    `${lines.map((line, c) => `${line.name} ${line.format(columns[c]?.[index] ?? null)}`).join(', ')}`
  )
}

// ---- uPlot options ----

/** Stacked lines are drawn at the sum of the lines below; a gap in one is a gap in all lines above it. */
function columnsOf({ data, lines }: ChartProps): uPlot.AlignedData {
  const [x = [], ...columns] = data
  const drawn: (number | null)[][] = []
  lines.forEach((line, c) => {
    const own = columns[c] ?? []
    const below = line.isStacked === true ? drawn[c - 1] : undefined
    drawn.push(
      own.map((value, i) =>
        value === null
          ? null
          : below === undefined
            ? value
            : below[i] === null
              ? null
              : value + (below[i] ?? 0),
      ),
    )
  })
  return [x, ...drawn] as uPlot.AlignedData
}

function optionsOf(props: ChartProps, colourOf: ColourOf): PlotOptions {
  const formatTick = (tick: number): string => props.lines[0]?.format(tick) ?? String(tick)
  return {
    // The ticks are at full hours and days of the chosen zone.
    tzDate: (at) => (zone() === 'utc' ? uPlot.tzDate(new Date(at * 1000), 'Etc/UTC') : new Date(at * 1000)),
    cursor: {
      drag: { x: true, y: false },
      ...(props.syncKey === undefined ? {} : { sync: { key: props.syncKey, setSeries: false } }),
    },
    scales: { x: { time: true }, y: { range: (_plot, _min, max) => [0, Math.max(props.max ?? 0, max, 1)] } },
    axes: [
      { values: (_plot, ticks) => timeTicks(ticks) },
      {
        size: 76,
        values: (_plot, ticks) => distinct(ticks.map(formatTick)),
        ...(props.steps === undefined ? {} : { incrs: [...props.steps] }),
      },
    ],
    series: [
      {},
      ...props.lines.map(({ name, colour, isDashed, isStacked }, index) => ({
        label: name,
        stroke: colourOf(colour),
        width: 1.5,
        spanGaps: false,
        points: { show: false },
        ...(isDashed === true ? { dash: [6, 4] } : {}),
        // The lowest line of a stack is filled down to the axis; the others are filled down to the line
        // below.
        ...(isStacked !== true && props.lines[index + 1]?.isStacked === true
          ? { fill: `${colourOf(colour)}40` }
          : {}),
      })),
    ],
    bands: props.lines.flatMap(({ colour, isStacked }, index) =>
      isStacked === true
        ? [{ series: [index + 1, index] as [number, number], fill: `${colourOf(colour)}40` }]
        : [],
    ),
    hooks: { draw: [(plot) => drawMarks(plot, props.marks ?? [], colourOf)] },
  }
}

/** Hours and minutes; the date at the first tick of a day, or where each tick is a day. */
function timeTicks(ticks: readonly number[]): string[] {
  const texts = ticks.map((tick) => clockTime(tick * 1000))
  return texts.map((text, i) => {
    const [day = '', time = ''] = text.split(' ')
    const isNewDay = i === 0 || texts[i - 1]?.startsWith(day) === false
    return isNewDay && i > 0 ? day.slice(5) : time.slice(0, 5)
  })
}

/** Omits a label that equals the one below it: it is rounded and would be wrong. */
function distinct(texts: readonly string[]): string[] {
  return texts.map((text, i) => (text === texts[i - 1] ? '' : text))
}

function drawMarks(plot: uPlot, marks: readonly ChartMark[], colourOf: ColourOf): void {
  const { ctx, bbox } = plot
  ctx.save()
  for (const { from, to, kind } of marks) {
    const left = plot.valToPos(from, 'x', true)
    const right = plot.valToPos(to, 'x', true)
    if (right < bbox.left || left > bbox.left + bbox.width) continue
    ctx.fillStyle = colourOf(kind === 'swap_storm' ? '--swap' : '--accent')
    ctx.globalAlpha = to > from ? 0.18 : 0.8
    ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height)
  }
  ctx.restore()
}
