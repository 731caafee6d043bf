/**
 * Draws the bars of a Gantt chart, grouped by kind so that each colour is set once. Patterns are drawn only
 * in bars that are wide enough to show them.
 */
import type { BarKind, GanttBar, GanttLayout } from './gantt-layout.ts'

/** Each kind has a colour and a pattern, so that colours need not be distinguished. */
export const BAR_LOOKS: readonly {
  readonly kind: BarKind
  readonly colour: string
  readonly pattern: string | null
  readonly words: string
}[] = [
  { kind: 'active', colour: '--resident', pattern: null, words: 'active' },
  { kind: 'idle', colour: '--foreign', pattern: 'diagonal', words: 'idle' },
  { kind: 'moving', colour: '--swap', pattern: 'bars', words: 'moving' },
  { kind: 'out', colour: '--swapped', pattern: 'dots', words: 'out' },
  { kind: 'unknown', colour: '--line', pattern: 'cross', words: 'unknown' },
]

const PATTERN_PX = 8
const PATTERNED_FROM_PX = 4
const BAR_PX = 13

export interface GanttPaint {
  /** Resolves a CSS custom property. */
  readonly colourOf: (property: string) => string
  readonly selected: number | null
  readonly height: number
  readonly width: number
}

export function drawGantt(
  ctx: CanvasRenderingContext2D,
  bars: readonly GanttBar[],
  layout: GanttLayout,
  paint: GanttPaint,
): void {
  ctx.clearRect(0, 0, paint.width, paint.height)
  const { x, y, w } = layout
  for (const { kind, colour, pattern } of BAR_LOOKS) {
    ctx.fillStyle = paint.colourOf(colour)
    for (let at = 0; at < bars.length; at++) {
      if (bars[at]?.kind === kind) ctx.fillRect(x[at] as number, y[at] as number, w[at] as number, BAR_PX)
    }
    const fill = pattern === null ? null : patternOf(ctx, pattern, paint.colourOf('--surface'))
    if (fill === null) continue
    ctx.fillStyle = fill
    for (let at = 0; at < bars.length; at++) {
      if (bars[at]?.kind === kind && (w[at] as number) >= PATTERNED_FROM_PX) {
        ctx.fillRect(x[at] as number, y[at] as number, w[at] as number, BAR_PX)
      }
    }
  }
  if (paint.selected === null) return
  ctx.strokeStyle = paint.colourOf('--ink')
  ctx.lineWidth = 2
  ctx.strokeRect(
    x[paint.selected] as number,
    y[paint.selected] as number,
    w[paint.selected] as number,
    BAR_PX,
  )
}

function patternOf(ctx: CanvasRenderingContext2D, name: string, colour: string): CanvasPattern | null {
  const tile = document.createElement('canvas')
  tile.width = tile.height = PATTERN_PX
  const inner = tile.getContext('2d')
  if (inner === null) return null
  inner.strokeStyle = inner.fillStyle = colour
  inner.lineWidth = 1.5
  inner.beginPath()
  if (name === 'bars') {
    inner.moveTo(4, 0)
    inner.lineTo(4, 8)
  } else if (name === 'dots') inner.arc(4, 4, 1.6, 0, 7)
  else {
    inner.moveTo(-2, 2)
    inner.lineTo(2, -2)
    inner.moveTo(0, 8)
    inner.lineTo(8, 0)
    inner.moveTo(6, 10)
    inner.lineTo(10, 6)
  }
  if (name === 'cross') {
    inner.moveTo(0, 0)
    inner.lineTo(8, 8)
  }
  if (name === 'dots') inner.fill()
  else inner.stroke()
  return ctx.createPattern(tile, 'repeat')
}
