/**
 * uPlot in a component. It is created once; new data never resets a zoom; its data stays outside of reactive
 * proxies. It has a name, a group that arrow keys move through, a readout line, and a table of the same data.
 */
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { createEffect, createSignal, For, on, onCleanup, onMount, Show, type JSX } from 'solid-js'
import type { CsvCell } from '../format/csv.ts'
import { clockTime } from '../format/figures.ts'
import { theme } from '../state/theme.ts'
import { ChartExport } from './chart-export.tsx'
import { savePicture } from './save.ts'
import styles from './uplot-chart.module.css'

export interface ChartLine {
  readonly name: string
  /** A CSS custom property, for example `--utilization`. */
  readonly colour: string
  /** Formats a value. */
  readonly format: (value: number | null) => string
  /** Drawn on top of the previous line. */
  readonly isStacked?: boolean
  readonly isDashed?: boolean
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

/** Minimum time between two redraws of a live chart. */
const REDRAW_EVERY_MS = 500

export function UplotChart(props: ChartProps): JSX.Element {
  let place!: HTMLDivElement
  let plot: uPlot | undefined
  let drawnAt = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const [isZoomed, setZoomed] = createSignal(false)
  const [at, setAt] = createSignal<number | null>(null)

  const draw = (): void => {
    timer = undefined
    drawnAt = performance.now()
    plot?.setData(columnsOf(props), !isZoomed())
    if (isZoomed()) plot?.redraw(true, true)
  }
  const make = (): void => {
    plot?.destroy()
    plot = new uPlot(optionsOf(props, place.clientWidth, { setAt, setZoomed }), columnsOf(props), place)
  }
  const resume = (): void => {
    setZoomed(false)
    props.onZoom?.(null)
    draw()
  }

  onMount(() => {
    make()
    const resized = new ResizeObserver(() =>
      plot?.setSize({ width: place.clientWidth, height: props.height ?? 180 }),
    )
    resized.observe(place)
    onCleanup(() => resized.disconnect())
  })
  createEffect(
    on(
      () => [props.data, props.marks] as const,
      () => (timer ??= setTimeout(draw, Math.max(0, drawnAt + REDRAW_EVERY_MS - performance.now()))),
      { defer: true },
    ),
  )
  createEffect(on(theme, make, { defer: true }))
  onCleanup(() => {
    clearTimeout(timer)
    plot?.destroy()
  })

  const move = (event: KeyboardEvent): void => {
    const count = props.data[0]?.length ?? 0
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -count, End: count }[
      event.key
    ]
    if (step === undefined || plot === undefined || count === 0) return
    event.preventDefault()
    const index = Math.min(count - 1, Math.max(0, (at() ?? count) + step))
    setAt(index)
    plot.setCursor({ left: plot.valToPos(props.data[0]?.[index] ?? 0, 'x'), top: 0 })
  }
  return (
    <figure class={styles['chart']} aria-label={props.name}>
      <figcaption class={styles['caption']}>
        <strong>{props.name}</strong>
        <Legend {...props} />
        <Show when={isZoomed()}>
          <button onClick={resume}>Resume live</button>
        </Show>
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
        {statusOf(props, at())}
      </p>
      <ChartExport
        name={props.name}
        head={['Time', ...props.lines.map(({ name }) => name)]}
        shown={() => rowsOf(props)}
        csv={() => csvRowsOf(props)}
        onPicture={() => plot !== undefined && savePicture(props.name, plot.ctx.canvas, props.lines)}
      />
    </figure>
  )
}

function Legend(props: ChartProps): JSX.Element {
  return (
    <span class={styles['legend']}>
      <For each={props.lines}>
        {(line) => (
          <span>
            <i
              classList={{ [styles['dashed'] as string]: line.isDashed === true }}
              ref={(element) => element.style.setProperty('--key', `var(${line.colour})`)}
            />{' '}
            {line.name}
          </span>
        )}
      </For>
    </span>
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

function statusOf({ data, lines }: ChartProps, at: number | null): string {
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

interface Signals {
  readonly setAt: (index: number | null) => void
  readonly setZoomed: (isZoomed: boolean) => void
}

function optionsOf(props: ChartProps, width: number, { setAt, setZoomed }: Signals): uPlot.Options {
  const colourOf = (name: string): string =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim()
  const formatTick = (tick: number): string => props.lines[0]?.format(tick) ?? String(tick)
  const axis = {
    stroke: colourOf('--quiet'),
    grid: { stroke: colourOf('--line'), width: 1 },
    ticks: { stroke: colourOf('--line') },
  }
  return {
    width,
    height: props.height ?? 180,
    legend: { show: false },
    cursor: {
      drag: { x: true, y: false },
      ...(props.syncKey === undefined ? {} : { sync: { key: props.syncKey, setSeries: false } }),
    },
    scales: { x: { time: true }, y: { range: (_plot, _min, max) => [0, Math.max(props.max ?? 0, max, 1)] } },
    axes: [
      { ...axis, values: (_plot, ticks) => timeTicks(ticks) },
      {
        ...axis,
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
    hooks: {
      setCursor: [(plot) => setAt(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          if (plot.select.width < 4) return
          setZoomed(true)
          props.onZoom?.({
            from: plot.posToVal(plot.select.left, 'x'),
            to: plot.posToVal(plot.select.left + plot.select.width, 'x'),
          })
        },
      ],
      draw: [(plot) => drawMarks(plot, props.marks ?? [], colourOf)],
    },
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

function drawMarks(plot: uPlot, marks: readonly ChartMark[], colourOf: (name: string) => string): void {
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
