/**
 * The one line chart of the page: uPlot in a component. It has a name and a legend, is a group that arrow
 * keys move through, and has a readout line and a table of the same data. Its data stays outside of reactive
 * proxies.
 */
import { colourOf } from '../design/colour.ts'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { createEffect, createSignal, For, on, onCleanup, onMount, Show, type JSX } from 'solid-js'
import { theme } from '../state/theme.ts'
import { zone } from '../state/zone.ts'
import { ChartExport, type ChartExportProps } from './chart-export.tsx'
import { savePicture, type PictureKey } from './save.ts'
import styles from './line-chart.module.css'

export interface LineKey extends PictureKey {
  readonly isDashed?: boolean
}

/** Resolves a CSS custom property. */
export type ColourOf = (property: string) => string

export type PlotOptions = Omit<uPlot.Options, 'width' | 'height' | 'legend' | 'axes'> & {
  /** The x axis and the y axis, in addition to their colours. */
  readonly axes: readonly [uPlot.Axis, uPlot.Axis]
}

export interface LineChartProps extends Omit<ChartExportProps, 'onPicture'> {
  readonly keys: readonly LineKey[]
  readonly data: uPlot.AlignedData
  readonly height: number
  /** Read again with the colours of the theme. */
  readonly optionsOf: (colourOf: ColourOf) => PlotOptions
  /** Text for an index; null: none is chosen. */
  readonly readout: (index: number | null) => string
  /**
   * New data is drawn at most every REDRAW_EVERY_MS and never resets a zoom, and keys start at the last
   * point. Omitted: new data makes a new plot.
   */
  readonly isLive?: boolean
  readonly onZoom?: ((range: { readonly from: number; readonly to: number } | null) => void) | undefined
}

const REDRAW_EVERY_MS = 500

export function LineChart(props: LineChartProps): JSX.Element {
  let place!: HTMLDivElement
  let plot: uPlot | undefined
  let drawnAt = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const [isZoomed, setZoomed] = createSignal(false)
  const [at, setAt] = createSignal<number | null>(null)

  const zoom = ({ select, posToVal }: uPlot): void => {
    if (select.width < 4) return
    setZoomed(true)
    props.onZoom?.({ from: posToVal(select.left, 'x'), to: posToVal(select.left + select.width, 'x') })
  }
  const make = (): void => {
    plot?.destroy()
    plot = new uPlot(withFrame(props, place.clientWidth, setAt, zoom), props.data, place)
  }
  const draw = (): void => {
    timer = undefined
    drawnAt = performance.now()
    plot?.setData(props.data, !isZoomed())
    if (isZoomed()) plot?.redraw(true, true)
  }
  const update = (): void => {
    if (props.isLive === true)
      timer ??= setTimeout(draw, Math.max(0, drawnAt + REDRAW_EVERY_MS - performance.now()))
    else make()
  }
  const resume = (): void => {
    setZoomed(false)
    props.onZoom?.(null)
    draw()
  }
  onMount(() => {
    make()
    const resized = new ResizeObserver(() =>
      plot?.setSize({ width: place.clientWidth, height: props.height }),
    )
    resized.observe(place)
    onCleanup(() => resized.disconnect())
  })
  createEffect(on(() => [props.data, props.keys], update, { defer: true }))
  createEffect(on([theme, zone], make, { defer: true }))
  onCleanup(() => {
    clearTimeout(timer)
    plot?.destroy()
  })
  const move = (event: KeyboardEvent): void => {
    const count = props.data[0].length
    const index = indexAfter(event.key, at(), count, props.isLive === true)
    if (index === null || plot === undefined) return
    event.preventDefault()
    plot.setCursor({ left: plot.valToPos(props.data[0][index] ?? 0, 'x'), top: 0 })
    setAt(index)
  }
  return (
    <figure class={styles['chart']} aria-label={props.name}>
      <figcaption class={styles['caption']}>
        <strong>{props.name}</strong>
        <Legend keys={props.keys} />
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
        {props.readout(at())}
      </p>
      <ChartExport
        {...props}
        onPicture={() => plot !== undefined && savePicture(props.name, plot.ctx.canvas, props.keys)}
      />
    </figure>
  )
}

function Legend(props: { readonly keys: readonly LineKey[] }): JSX.Element {
  return (
    <span class={styles['legend']}>
      <For each={props.keys}>
        {(key) => (
          <span>
            <i
              classList={{ [styles['dashed'] as string]: key.isDashed === true }}
              ref={(element) => element.style.setProperty('--key', `var(${key.colour})`)}
            />{' '}
            {key.name}
          </span>
        )}
      </For>
    </span>
  )
}

/** The index that a key moves to; null: another key, or no points. */
function indexAfter(key: string, at: number | null, count: number, isLive: boolean): number | null {
  const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -count, End: count }[key]
  if (step === undefined || count === 0) return null
  const from = at ?? (isLive || step < 0 ? count : -1)
  return Math.min(count - 1, Math.max(0, from + step))
}

function withFrame(
  { optionsOf, height }: LineChartProps,
  width: number,
  setAt: (index: number | null) => void,
  zoom: (plot: uPlot) => void,
): uPlot.Options {
  const options = optionsOf(colourOf)
  const axis: uPlot.Axis = {
    stroke: colourOf('--quiet'),
    grid: { stroke: colourOf('--line'), width: 1 },
    ticks: { stroke: colourOf('--line') },
  }
  return {
    ...options,
    width,
    height,
    legend: { show: false },
    axes: options.axes.map((each) => ({ ...axis, ...each })),
    hooks: {
      ...options.hooks,
      setCursor: [(plot) => setAt(plot.cursor.idx ?? null)],
      setSelect: [zoom],
    },
  }
}
