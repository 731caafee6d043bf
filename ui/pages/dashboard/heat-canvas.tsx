/** The cells of the map on a canvas, with pointer and keyboard. */
import { createEffect, createMemo, createSignal, on, onCleanup, onMount, type JSX } from 'solid-js'
import { colourOf } from '../../design/colour.ts'
import { theme } from '../../state/theme.ts'
import type { MapGpu } from './gpu-figures.ts'
import { cellAfter, cellAt, heatLayout } from './heat-layout.ts'
import styles from './gpu-map.module.css'

export interface HeatCanvasProps {
  readonly gpus: readonly MapGpu[]
  /** 0 to 4; null: unknown. */
  readonly stepOf: (gpu: MapGpu) => number | null
  /** Text in a cell that is large enough. */
  readonly textOf: (gpu: MapGpu) => string
  readonly selected: number | null
  /** Id of the line that describes the selected GPU. */
  readonly describedBy: string
  readonly onSelect: (at: number | null) => void
  readonly onOpen: (gpu: MapGpu) => void
}

/** Cells of this size have a text. */
const TEXT_FROM = 26
const STEPS = ['--heat-0', '--heat-1', '--heat-2', '--heat-3', '--heat-4'] as const
/** Text on the two darkest steps, in either theme. */
const LIGHT_TEXT_FROM = 3

export function HeatCanvas(props: HeatCanvasProps): JSX.Element {
  let place!: HTMLDivElement
  let canvas!: HTMLCanvasElement
  const [width, setWidth] = createSignal(0)
  const layout = createMemo(() => heatLayout(props.gpus, Math.max(120, width())))
  const draw = (): void => {
    const ctx = canvas.getContext('2d')
    if (ctx === null || width() === 0) return
    paint(ctx, canvas, { ...props, layout: layout(), width: width() })
  }
  onMount(() => {
    const resized = new ResizeObserver(() => setWidth(place.clientWidth))
    resized.observe(place)
    onCleanup(() => resized.disconnect())
  })
  createEffect(on([layout, () => props.selected, () => props.stepOf, theme], draw))
  createEffect(draw)
  const at = (event: PointerEvent | MouseEvent): number | null => {
    const { left, top } = canvas.getBoundingClientRect()
    return cellAt(event.clientX - left, event.clientY - top, layout())
  }
  const open = (index: number | null): void => {
    const gpu = props.gpus[index ?? -1]
    if (gpu !== undefined) props.onOpen(gpu)
  }
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') return open(props.selected)
    const next = cellAfter(event.key, props.selected, layout())
    if (next === null) return
    event.preventDefault()
    props.onSelect(next)
  }
  return (
    <div
      ref={place}
      class={styles['map']}
      tabindex="0"
      role="group"
      aria-label="GPU map: use the arrow keys to select a GPU and Enter to open its node"
      aria-describedby={props.describedBy}
      onKeyDown={onKey}
    >
      <canvas
        ref={canvas}
        onPointerMove={(event) => props.onSelect(at(event))}
        onPointerLeave={() => props.onSelect(null)}
        onClick={(event) => open(at(event))}
      />
    </div>
  )
}

interface Painted extends Pick<HeatCanvasProps, 'gpus' | 'stepOf' | 'textOf' | 'selected'> {
  readonly layout: ReturnType<typeof heatLayout>
  readonly width: number
}

function paint(
  ctx: CanvasRenderingContext2D,
  canvas: HTMLCanvasElement,
  { gpus, stepOf, textOf, selected, layout, width }: Painted,
): void {
  const ratio = devicePixelRatio
  const { cells, size, height, names } = layout
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(height * ratio)
  canvas.style.height = `${height}px`
  ctx.scale(ratio, ratio)
  const fills = STEPS.map(colourOf)
  const [ink, quiet, edge, surface] = ['--ink', '--quiet', '--edge', '--surface'].map(colourOf)
  const font = getComputedStyle(canvas).fontFamily
  ctx.textBaseline = 'middle'
  ctx.font = `500 11px ${font}`
  ctx.textAlign = 'center'
  gpus.forEach((gpu, i) => {
    const cell = cells[i]
    if (cell === undefined) return
    const step = stepOf(gpu)
    if (step === null) {
      ctx.strokeStyle = edge as string
      ctx.strokeRect(cell.x + 0.5, cell.y + 0.5, size - 1, size - 1)
    } else {
      ctx.fillStyle = fills[step] as string
      ctx.fillRect(cell.x, cell.y, size, size)
    }
    if (size < TEXT_FROM) return
    ctx.fillStyle = (step ?? 0) >= LIGHT_TEXT_FROM ? (surface as string) : (ink as string)
    ctx.fillText(textOf(gpu), cell.x + size / 2, cell.y + size / 2 + 1)
  })
  ctx.textAlign = 'left'
  ctx.fillStyle = quiet as string
  for (const { text, x, y } of names) ctx.fillText(text, x, y + 7)
  const chosen = cells[selected ?? -1]
  if (chosen === undefined) return
  ctx.lineWidth = 2
  ctx.strokeStyle = ink as string
  ctx.strokeRect(chosen.x - 1, chosen.y - 1, size + 2, size + 2)
}
