/** Lines over time: the newest data on the right, zoomed by dragging, with marks. */
import uPlot from 'uplot'
import { createMemo, createSignal, onCleanup, onMount, type JSX } from 'solid-js'
import type { CsvCell } from '../format/csv.ts'
import { clockTime } from '../format/clock.ts'
import { zone } from '../state/zone.ts'
import { useZoom } from '../state/range.ts'
import type { TooltipContent } from './chart-tooltip.tsx'
import { LineLegend } from './line-legend.tsx'
import { lonelyIndexes } from './series-data.ts'
import { shareCursor, sharedReadouts, type Readout } from './shared-cursor.ts'
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
  /** Charts with the same key share a crosshair and a tooltip. */
  readonly syncKey: string
  /** Upper end of the scale; omitted: from the data. */
  readonly max?: number
  /** Steps of the scale in ascending order; omitted: decimal steps. */
  readonly steps?: readonly number[]
}

const HEIGHT = 180

export function TimeChart(props: ChartProps): JSX.Element {
  const zoom = useZoom()
  const [hidden, setHidden] = createSignal<ReadonlySet<string>>(new Set())
  const toggle = (name: string): void => {
    const next = new Set(hidden())
    if (!next.delete(name)) next.add(name)
    setHidden(next)
  }
  /** The drawn lines, without the hidden ones. */
  const lines = createMemo(() => props.lines.filter(({ name }) => !hidden().has(name)))
  const shown = (): ChartProps => ({ ...props, lines: lines(), data: shownData(props, hidden()) })
  // Marks are drawn with the data.
  const data = createMemo(() => {
    void props.marks
    return columnsOf(shown())
  })
  onMount(() => onCleanup(shareCursor(props.syncKey, (at) => readoutAt(shown(), at))))
  return (
    <LineChart
      name={props.name}
      keys={lines()}
      data={data()}
      height={HEIGHT}
      optionsOf={(colourOf) => optionsOf(shown(), colourOf)}
      readout={(index) => readoutOf(shown(), index)}
      isLive
      onZoom={(from, to) => zoom(from * 1000, to * 1000)}
      tooltip={(index) => tooltipOf(props, props.data[0]?.[index] ?? 0)}
      legend={() => (
        <LineLegend
          name={props.name}
          lines={props.lines}
          columns={props.data.slice(1)}
          hidden={hidden()}
          onToggle={toggle}
        />
      )}
      head={['Time', ...props.lines.map(({ name }) => name)]}
      shown={() => rowsOf(props)}
      csv={() => csvRowsOf(props)}
    />
  )
}

function shownData({ lines, data }: ChartProps, hidden: ReadonlySet<string>): ChartProps['data'] {
  return data.filter((_column, at) => at === 0 || !hidden.has(lines[at - 1]?.name ?? ''))
}

function tooltipOf({ syncKey, marks = [], data: [x = []] }: ChartProps, at: number): TooltipContent {
  return {
    time: clockTime(at * 1000),
    readouts: sharedReadouts(syncKey, at),
    marks: marksAt(marks, x, at).map(({ text }) => text),
  }
}

function readoutAt({ name, lines, data }: ChartProps, at: number): Readout {
  const [x = [], ...columns] = data
  const index = x.indexOf(at)
  return {
    name,
    lines: lines.map((line, c) => ({
      name: line.name,
      colour: line.colour,
      text: line.format(columns[c]?.[index] ?? null),
    })),
  }
}

/** Share of the range within which an annotation is at the crosshair. */
const NEAR = 0.01

function marksAt(
  marks: readonly ChartMark[],
  x: readonly (number | null)[],
  at: number,
): readonly ChartMark[] {
  const near = ((x.at(-1) ?? 0) - (x[0] ?? 0)) * NEAR
  return marks.filter(({ from, to }) => from - near <= at && at <= to + near)
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

function readoutOf({ data, lines, marks = [] }: ChartProps, at: number | null): string {
  const [x = [], ...columns] = data
  // The last point may be incomplete.
  const index = at ?? x.findLastIndex((_, i) => columns.some((column) => (column[i] ?? null) !== null))
  const time = x[index]
  if (time === undefined || time === null) return 'No data yet.'
  const values = lines.map((line, c) => `${line.name} ${line.format(columns[c]?.[index] ?? null)}`)
  const titles = at === null ? [] : marksAt(marks, x, time).map(({ text }) => `. ${text}`)
  return `${clockTime(time * 1000)}: ${values.join(', ')}${titles.join('')}`
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
  /** `50%`, not `50.0%`. */
  const formatTick = (tick: number): string =>
    (props.lines[0]?.format(tick) ?? String(tick)).replace(/\.0(?=\D|$)/, '')
  return {
    // The ticks are at full hours and days of the chosen zone.
    tzDate: (at) => (zone() === 'utc' ? uPlot.tzDate(new Date(at * 1000), 'Etc/UTC') : new Date(at * 1000)),
    cursor: {
      // The selected range is requested, and drawn when it has arrived.
      drag: { x: true, y: false, setScale: false },
      sync: { key: props.syncKey, setSeries: false },
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
        // A line needs two points: one between two gaps is drawn as a dot.
        points: {
          show: false,
          size: 5,
          fill: colourOf(colour),
          filter: (plot: uPlot, at: number) => lonelyIndexes(plot.data[at] ?? []),
        },
        ...(isDashed === true ? { dash: [6, 4] } : {}),
        // The lowest line of a stack is filled down to the axis; the others are filled down to the line
        // below.
        ...((index === 0 || isStacked !== true) &&
        (isStacked === true || props.lines[index + 1]?.isStacked === true)
          ? { fill: `${colourOf(colour)}40` }
          : {}),
      })),
    ],
    bands: props.lines.flatMap(({ colour, isStacked }, index) =>
      isStacked === true && index > 0
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
