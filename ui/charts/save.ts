/** Saves a chart as a file: the browser downloads it. */
import { colourOf } from '../design/colour.ts'
import { csvOf, type CsvCell } from '../format/csv.ts'

/** Until then the browser may still read the data. */
const REVOKE_AFTER_MS = 10_000

export function save(name: string, blob: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_AFTER_MS)
}

export function saveCsv(name: string, rows: readonly (readonly CsvCell[])[]): void {
  save(`${name}.csv`, new Blob([csvOf(rows)], { type: 'text/csv' }))
}

export interface PictureKey {
  readonly name: string
  /** A CSS custom property, for example `--utilization`. */
  readonly colour: string
}

const FONT_PX = 13
const PAD_PX = 12

/**
 * Adds the name and the legend above the chart, on the background of the page: the canvas itself is
 * transparent and has neither.
 */
export function savePicture(name: string, canvas: HTMLCanvasElement, keys: readonly PictureKey[]): void {
  const picture = document.createElement('canvas')
  const ctx = picture.getContext('2d')
  if (ctx === null) return
  const [font, pad] = [FONT_PX * devicePixelRatio, PAD_PX * devicePixelRatio]
  const write = (bold: boolean): string => (ctx.font = `${bold ? 'bold ' : ''}${font}px sans-serif`)
  write(false)
  const lines = linesOf(ctx, keys, canvas.width - pad, font)
  picture.width = canvas.width + 2 * pad
  picture.height = canvas.height + (1 + lines.length) * 1.5 * font + 2 * pad
  ctx.fillStyle = colourOf('--surface')
  ctx.fillRect(0, 0, picture.width, picture.height)
  ctx.textBaseline = 'top'
  ctx.fillStyle = colourOf('--ink')
  write(true)
  ctx.fillText(name, pad, pad)
  write(false)
  lines.forEach((line, at) => {
    const top = pad + (1 + at) * 1.5 * font
    for (const { key, left } of line) {
      ctx.fillStyle = colourOf(key.colour)
      ctx.fillRect(pad + left, top, font * 0.8, font * 0.8)
      ctx.fillStyle = colourOf('--quiet')
      ctx.fillText(key.name, pad + left + font * 1.2, top)
    }
  })
  ctx.drawImage(canvas, pad, pad + (1 + lines.length) * 1.5 * font)
  picture.toBlob((blob) => blob !== null && save(`${name}.png`, blob), 'image/png')
}

interface Placed {
  readonly key: PictureKey
  readonly left: number
}

/** Distributes the entries over lines of this width. */
function linesOf(
  ctx: CanvasRenderingContext2D,
  keys: readonly PictureKey[],
  width: number,
  font: number,
): readonly (readonly Placed[])[] {
  const lines: Placed[][] = []
  let left = Infinity
  for (const key of keys) {
    const needs = ctx.measureText(key.name).width + font * 2.4
    if (left + needs > width) {
      lines.push([])
      left = 0
    }
    lines.at(-1)?.push({ key, left })
    left += needs
  }
  return lines
}
