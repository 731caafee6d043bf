/**
 * Figures over something that is not time: curves with bands, or points with their names. Made once for its data; a group that arrow keys
 * move through and a line that says what stands there. The table of the same figures is the page's.
 */
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { createEffect, createSignal, For, on, onCleanup, onMount, type JSX } from 'solid-js'
import { theme } from '../state/theme.ts'
import styles from './uplot-chart.module.css'

type Column = readonly (number | null)[]

export interface Curve {
  readonly name: string
  /** A custom property: `--utilization`. */
  readonly colour: string
  readonly values: Column
  /** Lower and upper edge; left out: none is drawn. */
  readonly band?: readonly [low: Column, high: Column]
}

export interface CurveMark {
  readonly x: number
  /** Stands at its top, and in the legend. */
  readonly name: string
  readonly colour: string
}

export interface CurveChartProps {
  readonly name: string
  readonly xName: string
  readonly yName: string
  /** Rising. */
  readonly x: readonly number[]
  readonly curves: readonly Curve[]
  readonly marks?: readonly CurveMark[]
  /** Names of the points. Given: points are drawn and no lines. */
  readonly names?: readonly string[]
  /** What stands at a place, in words. */
  readonly describe: (index: number) => string
}

const HEIGHT = 280

export function CurveChart(props: CurveChartProps): JSX.Element {
  let place!: HTMLDivElement
  let plot: uPlot | undefined
  const [at, setAt] = createSignal<number | null>(null)
  const make = (): void => {
    plot?.destroy()
    plot = new uPlot(optionsOf(props, place.clientWidth, setAt), dataOf(props), place)
  }
  onMount(() => {
    make()
    const resized = new ResizeObserver(() => plot?.setSize({ width: place.clientWidth, height: HEIGHT }))
    resized.observe(place)
    onCleanup(() => resized.disconnect())
  })
  createEffect(on(() => [theme(), props.x, props.curves, props.marks], make, { defer: true }))
  onCleanup(() => plot?.destroy())

  const move = (event: KeyboardEvent): void => {
    const count = props.x.length
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -count, End: count }[event.key]
    if (step === undefined || plot === undefined || count === 0) return
    event.preventDefault()
    const index = Math.min(count - 1, Math.max(0, (at() ?? (step > 0 ? -1 : count)) + step))
    plot.setCursor({ left: plot.valToPos(props.x[index] as number, 'x'), top: 0 })
    setAt(index)
  }
  const here = (): string => {
    const index = at()
    return index === null || index >= props.x.length ? 'Point at it, or move with the arrow keys.' : props.describe(index)
  }
  return (
    <figure class={styles['chart']} aria-label={props.name}>
      <figcaption class={styles['caption']}>
        <strong>{props.name}</strong>
        <span class={styles['legend']}>
          <For each={[...props.curves, ...(props.marks ?? [])]}>
            {(each) => (
              <span>
                <i ref={(element) => element.style.setProperty('background', `var(${each.colour})`)} /> {each.name}
              </span>
            )}
          </For>
        </span>
      </figcaption>
      <div
        class={styles['plot']}
        ref={place}
        tabindex="0"
        role="group"
        aria-label={`${props.name}: arrow keys move through it`}
        onKeyDown={move}
      />
      <p class={styles['status']} role="status">
        {here()}
      </p>
    </figure>
  )
}

// ---- what uPlot is told ----

function dataOf({ x, curves }: CurveChartProps): uPlot.AlignedData {
  return [x, ...curves.flatMap(({ values, band }) => [values, ...(band ?? [])])] as uPlot.AlignedData
}

function optionsOf(props: CurveChartProps, width: number, setAt: (index: number | null) => void): uPlot.Options {
  const colourOf = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
  const axis = { stroke: colourOf('--quiet'), grid: { stroke: colourOf('--line'), width: 1 }, ticks: { stroke: colourOf('--line') } }
  const series: uPlot.Series[] = [{}]
  const bands: uPlot.Band[] = []
  for (const { name, colour, band } of props.curves) {
    const stroke = colourOf(colour)
    const isPoints = props.names !== undefined
    series.push({ label: name, stroke, width: isPoints ? 0 : 2, points: { show: true, size: isPoints ? 9 : 6, fill: stroke } })
    if (band === undefined) continue
    const edge = { stroke: 'transparent', width: 0, points: { show: false } }
    bands.push({ series: [series.length + 1, series.length], fill: `${stroke}33` })
    series.push({ label: `${name}, p10`, ...edge }, { label: `${name}, p90`, ...edge })
  }
  return {
    width,
    height: HEIGHT,
    padding: [20, 24, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: (_plot, min, max) => widened(min, max) },
      y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.25)] },
    },
    axes: [
      { ...axis, label: props.xName, labelSize: 20 },
      { ...axis, label: props.yName, labelSize: 20, size: 50 },
    ],
    series,
    bands,
    hooks: {
      setCursor: [(plot) => setAt(plot.cursor.idx ?? null)],
      draw: [
        (plot) => {
          drawMarks(plot, props.marks ?? [], colourOf)
          drawNames(plot, props, colourOf('--ink'))
        },
      ],
    },
  }
}

/** So that the first and the last point do not lie on the edge. */
function widened(min: number, max: number): [number, number] {
  const margin = max > min ? (max - min) * 0.04 : Math.max(1, min * 0.1)
  return [min - margin, max + margin]
}

function drawMarks(plot: uPlot, marks: readonly CurveMark[], colourOf: (name: string) => string): void {
  const { ctx, bbox } = plot
  ctx.save()
  ctx.font = `${11 * devicePixelRatio}px sans-serif`
  marks.forEach(({ x, name, colour }, index) => {
    const left = plot.valToPos(x, 'x', true)
    ctx.fillStyle = colourOf(colour)
    ctx.fillRect(left - devicePixelRatio, bbox.top, 2 * devicePixelRatio, bbox.height)
    const isRight = left > bbox.left + bbox.width * 0.8
    ctx.textAlign = isRight ? 'right' : 'left'
    ctx.fillText(name, left + (isRight ? -6 : 6) * devicePixelRatio, bbox.top + (12 + index * 14) * devicePixelRatio)
  })
  ctx.restore()
}

function drawNames(plot: uPlot, { x, curves, names }: CurveChartProps, ink: string): void {
  if (names === undefined) return
  const { ctx } = plot
  ctx.save()
  ctx.font = `${11 * devicePixelRatio}px sans-serif`
  ctx.fillStyle = ink
  // Neighbours stand above and below in turn, and none beyond the edge.
  names.forEach((name, index) => {
    const y = curves.map(({ values }) => values[index] ?? null).find((value) => value !== null) ?? null
    if (y === null) return
    const left = plot.valToPos(x[index] as number, 'x', true)
    const isRight = left > plot.bbox.left + plot.bbox.width * 0.75
    ctx.textAlign = isRight ? 'right' : 'left'
    ctx.fillText(
      name,
      left + (isRight ? -7 : 7) * devicePixelRatio,
      plot.valToPos(y, 'y', true) + (index % 2 === 0 ? -8 : 16) * devicePixelRatio,
    )
  })
  ctx.restore()
}
