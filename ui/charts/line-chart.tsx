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
import { ChartTooltip, type TooltipContent } from './chart-tooltip.tsx'
import { savePicture, type PictureKey } from './save.ts'
import styles from './line-chart.module.css'

export interface LineKey extends PictureKey {
  readonly isDashed?: boolean
}

/** Resolves a CSS custom property. */
export type ColourOf = (property: string) => string

export type PlotOptions = Omit<uPlot.Options, 'width' | 'height' | 'legend' | 'axes'> & {
  /** The x axis and the y axis, without their colours. */
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
   * New data is drawn at most every REDRAW_EVERY_MS, and keys start at the last point. Omitted: new data
   * makes a new plot.
   */
  readonly isLive?: boolean
  /** The selected part of the x axis. */
  readonly onZoom?: (from: number, to: number) => void
  /** Shown at the crosshair while the pointer is in the chart or keys move through it. */
  readonly tooltip?: (index: number) => TooltipContent
  /** Instead of the names of the keys. */
  readonly legend?: () => JSX.Element
}

const REDRAW_EVERY_MS = 500

export function LineChart(props: LineChartProps): JSX.Element {
  let place!: HTMLDivElement
  let plot: uPlot | undefined
  let drawnAt = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const [at, setAt] = createSignal<number | null>(null)
  /** The pointer or the keys are in this chart, and not in one that shares its crosshair. */
  const [isUsed, setUsed] = createSignal(false)

  const zoom = (from: uPlot): void => {
    const { select, posToVal } = from
    if (select.width < 4) return
    const [start, end] = [posToVal(select.left, 'x'), posToVal(select.left + select.width, 'x')]
    from.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    props.onZoom?.(start, end)
  }
  const make = (): void => {
    plot?.destroy()
    plot = new uPlot(withFrame(props, place.clientWidth, setAt, zoom), props.data, place)
  }
  const draw = (): void => {
    timer = undefined
    drawnAt = performance.now()
    plot?.setData(props.data)
  }
  const update = (): void => {
    if (props.isLive === true)
      timer ??= setTimeout(draw, Math.max(0, drawnAt + REDRAW_EVERY_MS - performance.now()))
    else make()
  }
  onMount(() => {
    make()
    const resized = new ResizeObserver(() =>
      plot?.setSize({ width: place.clientWidth, height: props.height }),
    )
    resized.observe(place)
    onCleanup(() => resized.disconnect())
  })
  createEffect(on(() => props.data, update, { defer: true }))
  createEffect(on([theme, zone, () => props.keys], make, { defer: true }))
  onCleanup(() => {
    clearTimeout(timer)
    plot?.destroy()
  })
  const move = (event: KeyboardEvent): void => {
    const count = props.data[0].length
    const index = indexAfter(event.key, at(), count, props.isLive === true)
    if (index === null || plot === undefined) return
    event.preventDefault()
    setUsed(true)
    plot.setCursor({ left: plot.valToPos(props.data[0][index] ?? 0, 'x'), top: 0 })
    setAt(index)
  }
  const content = (): TooltipContent | null => {
    const index = at()
    return isUsed() && index !== null && index < props.data[0].length
      ? (props.tooltip?.(index) ?? null)
      : null
  }
  return (
    <figure class={styles['chart']} aria-label={props.name}>
      <figcaption class={styles['caption']}>
        <strong>{props.name}</strong>
        <Show when={props.legend === undefined}>
          <Keys keys={props.keys} />
        </Show>
      </figcaption>
      <div
        class={styles['plot']}
        ref={place}
        tabindex="0"
        role="group"
        aria-label={`${props.name}: use the arrow keys to move between points`}
        onKeyDown={move}
        onPointerEnter={() => setUsed(true)}
        onPointerLeave={() => setUsed(false)}
        onFocusOut={() => setUsed(false)}
      />
      <ChartTooltip content={content()} place={() => crosshairOf(place, plot)} />
      <p class={styles['status']} role="status" aria-live={isUsed() ? 'polite' : 'off'}>
        {props.readout(at())}
      </p>
      {props.legend?.()}
      <ChartExport
        {...props}
        onPicture={() => plot !== undefined && savePicture(props.name, plot.ctx.canvas, props.keys)}
      />
    </figure>
  )
}

/** In pixels of the window. */
function crosshairOf(
  place: HTMLElement,
  plot: uPlot | undefined,
): { readonly x: number; readonly y: number } {
  const { left, top } = (plot?.over ?? place).getBoundingClientRect()
  return { x: left + Math.max(0, plot?.cursor.left ?? 0), y: top + Math.max(0, plot?.cursor.top ?? 0) }
}

function Keys(props: { readonly keys: readonly LineKey[] }): JSX.Element {
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
