/**
 * Bars over time in rows, on a canvas with HTML labels. Pointer or arrow keys choose a bar; Enter or a click
 * opens its details. A readout line describes the chosen bar, and a table has the same bars.
 */
import { colourOf } from '../design/colour.ts'
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  on,
  onCleanup,
  onMount,
  Show,
  type Accessor,
  type JSX,
} from 'solid-js'
import { clockTime } from '../format/clock.ts'
import { seconds } from '../format/figures.ts'
import { theme } from '../state/theme.ts'
import { BAR_LOOKS, drawGantt } from './gantt-draw.ts'
import { barAt, layoutGantt, type BarKind, type GanttBar } from './gantt-layout.ts'
import { Table, type Column } from '../design/table.tsx'
import styles from './gantt-chart.module.css'

export interface GanttChartProps<B extends GanttBar> {
  readonly name: string
  readonly rows: readonly string[]
  readonly bars: readonly B[]
  readonly from: number
  readonly to: number
  /** Name of the task. */
  readonly textOf: (bar: B) => string
  /** Opens the details of a bar; omitted: bars have none. */
  readonly onOpen?: (bar: B) => void
  /** Formats an instant; omitted: in the time zone of this browser. */
  readonly timeOf?: (at: number) => string
  /** The kinds in the legend, with their names; omitted: all. */
  readonly kinds?: readonly BarWords[]
  /** Cursor shared by several charts. */
  readonly cursor?: GanttCursor
  /** Times of actions. */
  readonly marks?: readonly number[]
}

export interface BarWords {
  readonly kind: BarKind
  readonly words: string
}

export interface GanttCursor {
  /** Null: no cursor. */
  readonly at: number | null
  readonly onMove: (at: number | null) => void
  /** The cursor stays when the pointer leaves, and moves only on a click. */
  readonly isHeld?: boolean
}

const TABLE_ROWS = 150

export function GanttChart<B extends GanttBar>(props: GanttChartProps<B>): JSX.Element {
  let canvas!: HTMLCanvasElement
  let place!: HTMLDivElement
  const [width, setWidth] = createSignal(0)
  const [chosen, setChosen] = createSignal<number | null>(null)
  const layout = createMemo(() =>
    layoutGantt(props.bars, { from: props.from, to: props.to, width: width(), rowCount: props.rows.length }),
  )
  const share = (at: number): number => (at - props.from) / Math.max(1, props.to - props.from)
  const cursorShare = (): number | null => {
    const at = props.cursor?.at ?? null
    return at === null ? null : share(at)
  }
  const bar = (): B | undefined => props.bars[chosen() ?? -1]
  const words = (one: B): string => {
    return (
      `${props.rows[one.row] ?? ''}: ${props.textOf(one)}, ${wordsOf(props, one.kind)} from ` +
      `${timeOf(props, one.from)} for ${seconds((one.to - one.from) / 1000)}`
    )
  }
  const draw = (): void => {
    const ctx = canvas.getContext('2d')
    if (ctx === null || width() === 0) return
    const ratio = devicePixelRatio
    canvas.width = Math.round(width() * ratio)
    canvas.height = Math.round(layout().height * ratio)
    canvas.style.height = `${layout().height}px`
    ctx.scale(ratio, ratio)
    drawGantt(ctx, props.bars, layout(), {
      colourOf,
      selected: bar() === undefined ? null : chosen(),
      width: width(),
      height: layout().height,
    })
  }
  onMount(() => {
    const resized = new ResizeObserver(() => setWidth(place.clientWidth))
    resized.observe(place)
    onCleanup(() => resized.disconnect())
  })
  createEffect(on([layout, chosen, theme], draw))

  const choose = (event: MouseEvent): void => {
    const box = canvas.getBoundingClientRect()
    const at = barAt(layout(), event.clientX - box.left, event.clientY - box.top)
    setChosen(at)
    props.cursor?.onMove(instantAt(event))
    const found = props.bars[at ?? -1]
    if (found !== undefined) props.onOpen?.(found)
  }
  const instantAt = (event: MouseEvent): number => {
    const box = canvas.getBoundingClientRect()
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / Math.max(1, box.width)))
    return props.from + share * (props.to - props.from)
  }
  const point = (event: PointerEvent): void => {
    const isPressed = event.buttons === 1
    if (props.cursor !== undefined && (isPressed || props.cursor.isHeld !== true))
      props.cursor.onMove(instantAt(event))
  }
  const clearPointer = (): void => {
    if (props.cursor?.isHeld !== true) props.cursor?.onMove(null)
  }
  const move = (event: KeyboardEvent): void => {
    const count = props.bars.length
    if (event.key === 'Enter') {
      const found = bar()
      if (found !== undefined) props.onOpen?.(found)
      return
    }
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -count, End: count }[
      event.key
    ]
    if (step === undefined || count === 0) return
    event.preventDefault()
    const at = Math.min(count - 1, Math.max(0, (chosen() ?? (step > 0 ? -1 : count)) + step))
    setChosen(at)
    props.cursor?.onMove(props.bars[at]?.from ?? null)
  }
  return (
    <figure class={styles['figure']} aria-label={props.name}>
      <figcaption class="row">
        <strong>{props.name}</strong>
        <Legend kinds={props.kinds ?? BAR_LOOKS} />
      </figcaption>
      <div
        class={styles['frame']}
        classList={{ [styles['wide'] as string]: props.rows.some((row) => row.length > 7) }}
      >
        <Labels rows={props.rows} tops={layout().rowTops} height={layout().height} />
        <div
          class={styles['plot']}
          ref={place}
          tabindex="0"
          role="group"
          aria-label={
            `${props.name}: use the arrow keys to select a ` +
            `bar${props.onOpen === undefined ? '' : ' and Enter to show its decision'}`
          }
          onKeyDown={move}
          onPointerMove={point}
          onPointerLeave={clearPointer}
        >
          <canvas ref={canvas} class={styles['canvas']} onClick={choose} />
          <For each={props.marks ?? []}>{(at) => <Line at={share(at)} class={styles['mark'] ?? ''} />}</For>
          <Show when={cursorShare() !== null}>
            <Line at={cursorShare() ?? 0} class={styles['cursor'] ?? ''} />
          </Show>
        </div>
      </div>
      <p
        class={styles['axis']}
        classList={{ [styles['wideAxis'] as string]: props.rows.some((row) => row.length > 7) }}
      >
        <span>{timeOf(props, props.from)}</span>
        <span>{timeOf(props, props.to)}</span>
      </p>
      <p class="quiet text" role="status">
        <Show
          when={bar()}
          fallback={
            props.bars.length === 0 ? 'No task was placed in this period.' : `${props.bars.length} bars.`
          }
        >
          {(one) => words(one())}
        </Show>
      </p>
      <BarTable {...props} />
    </figure>
  )
}

function timeOf<B extends GanttBar>(
  { timeOf: of = clockTime }: Pick<GanttChartProps<B>, 'timeOf'>,
  at: number,
): string {
  return of(at)
}

function wordsOf<B extends GanttBar>(
  { kinds = BAR_LOOKS }: Pick<GanttChartProps<B>, 'kinds'>,
  kind: BarKind,
): string {
  return kinds.find((each) => each.kind === kind)?.words ?? kind
}

/** A line across all rows. @param at fraction of the width */
function Line(props: { readonly at: number; readonly class: string }): JSX.Element {
  let line!: HTMLSpanElement
  createEffect(() => line.style.setProperty('left', `${props.at * 100}%`))
  return <span ref={line} class={props.class} aria-hidden="true" />
}

function Legend(props: { readonly kinds: readonly BarWords[] }): JSX.Element {
  const swatch = (canvas: HTMLCanvasElement, kind: BarKind): void => {
    const draw = (): void => {
      const ctx = canvas.getContext('2d')
      if (ctx === null) return
      const bar = { row: 0, laneKey: '', from: 0, to: 1, kind }
      const layout = {
        x: new Float32Array([0]),
        y: new Float32Array([0]),
        w: new Float32Array([22]),
        rowTops: [0],
        height: 13,
      }
      drawGantt(ctx, [bar], layout, {
        colourOf,
        selected: null,
        width: 22,
        height: 13,
      })
    }
    createEffect(on(theme, draw))
  }
  return (
    <span class={`row ${styles['legend']}`}>
      <For each={props.kinds}>
        {(look) => (
          <span>
            <canvas width="22" height="13" aria-hidden="true" ref={(canvas) => swatch(canvas, look.kind)} />
            {` ${look.words}`}
          </span>
        )}
      </For>
    </span>
  )
}

function Labels(props: {
  readonly rows: readonly string[]
  readonly tops: readonly number[]
  readonly height: number
}): JSX.Element {
  let place!: HTMLDivElement
  createEffect(() => place.style.setProperty('height', `${props.height}px`))
  const stand = (label: HTMLElement, at: number): void => {
    createEffect(() => label.style.setProperty('top', `${props.tops[at] ?? 0}px`))
  }
  return (
    <div class={styles['labels']} ref={place}>
      <For each={props.rows}>
        {(row, at) => (
          <span title={row} ref={(label) => stand(label, at())}>
            {row}
          </span>
        )}
      </For>
    </div>
  )
}

function BarTable<B extends GanttBar>(props: GanttChartProps<B>): JSX.Element {
  const [isOpen, setOpen] = createSignal(false)
  const latest = (): readonly B[] =>
    [...props.bars].sort((a, b) => b.from - a.from || a.row - b.row).slice(0, TABLE_ROWS)
  const columns = (): readonly Column<B>[] => [
    { name: 'GPU', cell: (row) => props.rows[row().row] },
    { name: 'Task', class: 'text', cell: (row) => props.textOf(row()) },
    { name: 'State', cell: (row) => wordsOf(props, row().kind) },
    { name: 'From', cell: (row) => timeOf(props, row().from) },
    { name: 'Duration', isNumber: true, cell: (row) => seconds((row().to - row().from) / 1000) },
    ...(props.onOpen === undefined
      ? []
      : [
          {
            name: 'Reason',
            cell: (row: Accessor<B>) => <button onClick={() => props.onOpen?.(row())}>Decision</button>,
          },
        ]),
  ]
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      <Show when={isOpen()}>
        <Table
          name={`Bars of ${props.name}`}
          class={styles['table']}
          caption={`The latest ${latest().length} of ${props.bars.length} bars`}
          columns={columns()}
          rows={latest()}
        />
      </Show>
    </details>
  )
}
