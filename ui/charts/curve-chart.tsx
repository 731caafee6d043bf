/** Lines over an axis other than time: curves with bands, or named points. */
import type uPlot from 'uplot'
import { createMemo, type JSX } from 'solid-js'
import type { CsvCell } from '../format/csv.ts'
import { UNKNOWN } from '../format/figures.ts'
import { labelPlaces } from './label-places.ts'
import { LineChart, type ColourOf, type PlotOptions } from './line-chart.tsx'

type Column = readonly (number | null)[]

export interface Curve {
  readonly name: string
  /** A CSS custom property, for example `--utilization`. */
  readonly colour: string
  readonly values: Column
  /** Lower and upper edge; omitted: no band. */
  readonly band?: readonly [low: Column, high: Column]
}

export interface CurveMark {
  readonly x: number
  /** Shown at the top of the mark and in the legend. */
  readonly name: string
  readonly colour: string
}

export interface CurveChartProps {
  readonly name: string
  readonly xName: string
  readonly yName: string
  /** In ascending order. */
  readonly x: readonly number[]
  readonly curves: readonly Curve[]
  readonly marks?: readonly CurveMark[]
  /** Names of the points. If given, points are drawn instead of lines. */
  readonly names?: readonly string[]
  /** Readout text for an index. */
  readonly describe: (index: number) => string
}

const HEIGHT = 280
/** Line height of the names of marks. */
const MARK_PX = 14
/** With more points than this, only the line is drawn. */
const MAX_DOTS = 30

export function CurveChart(props: CurveChartProps): JSX.Element {
  const readout = (index: number | null): string =>
    index === null || index >= props.x.length
      ? 'Point at the chart or use the arrow keys to see the values.'
      : props.describe(index)
  const keys = createMemo(() => [...props.curves, ...(props.marks ?? [])])
  return (
    <LineChart
      name={props.name}
      keys={keys()}
      data={dataOf(props)}
      height={HEIGHT}
      optionsOf={(colourOf) => optionsOf(props, colourOf)}
      readout={readout}
      head={headOf(props)}
      shown={() => rowsOf(props).map((row) => row.map(cellWords))}
      csv={() => [headOf(props), ...rowsOf(props)]}
    />
  )
}

// ---- the same data as a table ----

function headOf({ xName, curves, names }: CurveChartProps): string[] {
  const named = names === undefined ? [] : ['Point']
  return [
    ...named,
    xName,
    ...curves.flatMap(({ name, band }) => [
      name,
      ...(band === undefined ? [] : [`${name}, p10`, `${name}, p90`]),
    ]),
  ]
}

function rowsOf({ x, curves, names }: CurveChartProps): CsvCell[][] {
  const columns = curves.flatMap(({ values, band }) => [values, ...(band ?? [])])
  return x.map((at, index) => [
    ...(names === undefined ? [] : [names[index] ?? '']),
    at,
    ...columns.map((column) => column[index] ?? null),
  ])
}

function cellWords(cell: CsvCell): string {
  if (cell === null) return UNKNOWN
  return typeof cell === 'string' || Number.isInteger(cell) ? String(cell) : cell.toFixed(2)
}

// ---- uPlot options ----

function dataOf({ x, curves }: CurveChartProps): uPlot.AlignedData {
  return [x, ...curves.flatMap(({ values, band }) => [values, ...(band ?? [])])] as uPlot.AlignedData
}

function optionsOf(props: CurveChartProps, colourOf: ColourOf): PlotOptions {
  const series: uPlot.Series[] = [{}]
  const bands: uPlot.Band[] = []
  for (const { name, colour, band } of props.curves) {
    const stroke = colourOf(colour)
    const isPoints = props.names !== undefined
    series.push({
      label: name,
      stroke,
      width: isPoints ? 0 : 2,
      points: { show: isPoints || props.x.length <= MAX_DOTS, size: isPoints ? 9 : 6, fill: stroke },
    })
    if (band === undefined) continue
    const edge = { stroke: 'transparent', width: 0, points: { show: false } }
    bands.push({ series: [series.length + 1, series.length], fill: `${stroke}33` })
    series.push({ label: `${name}, p10`, ...edge }, { label: `${name}, p90`, ...edge })
  }
  return {
    // Names of marks are stacked above the curves.
    padding: [12 + MARK_PX * (props.marks?.length ?? 0), 24, 0, 0],
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: {
        time: false,
        range: (_plot, min, max) => widened(min, max, props.names === undefined ? 0.04 : 0.12),
      },
      y: { range: (_plot, min, max) => heights(props, min, max) },
    },
    axes: [
      { label: props.xName, labelSize: 20 },
      { label: props.yName, labelSize: 20, size: 50 },
    ],
    series,
    bands,
    hooks: {
      draw: [
        (plot) => {
          drawMarks(plot, props.marks ?? [], colourOf)
          drawNames(plot, props, colourOf('--ink'))
        },
      ],
    },
  }
}

/**
 * The range starts at 0, and percentages end at 100. Named points use their own range, which separates them
 * better.
 */
function heights({ names, yName }: CurveChartProps, min: number, max: number): [number, number] {
  if (names !== undefined) {
    const [low, high] = widened(min, max, 0.3)
    return [Math.max(0, low), high]
  }
  const high = Math.max(1, max * 1.1)
  return [0, yName === 'percent' && max <= 100 ? Math.min(100, high) : high]
}

/** Keeps the first and the last point off the edge. */
function widened(min: number, max: number, share = 0.04): [number, number] {
  const margin = max > min ? (max - min) * share : Math.max(1, min * 0.1)
  return [min - margin, max + margin]
}

function drawMarks(plot: uPlot, marks: readonly CurveMark[], colourOf: ColourOf): void {
  const { ctx, bbox } = plot
  ctx.save()
  ctx.font = `${11 * devicePixelRatio}px sans-serif`
  marks.forEach(({ x, name, colour }, index) => {
    const left = plot.valToPos(x, 'x', true)
    ctx.fillStyle = colourOf(colour)
    const rise = MARK_PX * (marks.length - 1 - index) * devicePixelRatio
    ctx.fillRect(left - devicePixelRatio, bbox.top - rise, 2 * devicePixelRatio, bbox.height + rise)
    const isRight = left > bbox.left + bbox.width * 0.8
    ctx.textAlign = isRight ? 'right' : 'left'
    ctx.fillText(
      name,
      left + (isRight ? -6 : 6) * devicePixelRatio,
      bbox.top - (4 + MARK_PX * (marks.length - 1 - index)) * devicePixelRatio,
    )
  })
  ctx.restore()
}

function drawNames({ ctx, bbox, valToPos }: uPlot, { x, curves, names }: CurveChartProps, ink: string): void {
  if (names === undefined) return
  ctx.save()
  ctx.font = `${11 * devicePixelRatio}px sans-serif`
  ctx.fillStyle = ink
  ctx.textAlign = 'left'
  ctx.textBaseline = 'middle'
  const points = names.flatMap((name, index) => {
    const y = curves.map(({ values }) => values[index] ?? null).find((value) => value !== null) ?? null
    if (y === null) return []
    return [
      {
        name,
        x: valToPos(x[index] as number, 'x', true),
        y: valToPos(y, 'y', true),
        width: ctx.measureText(name).width,
      },
    ]
  })
  const room = { left: bbox.left, right: bbox.left + bbox.width, top: 0, bottom: bbox.top + bbox.height }
  const places = labelPlaces(points, { ...room, height: 14 * devicePixelRatio, gap: 8 * devicePixelRatio })
  points.forEach(({ name }, index) => {
    const place = places[index] ?? null
    if (place !== null) ctx.fillText(name, place.left, place.middle)
  })
  ctx.restore()
}
