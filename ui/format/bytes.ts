/** Bytes of base64, and sizes of files as text. Pure. */
import { UNKNOWN, whole } from './figures.ts'

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const

/** `512 B`, `3.4 MiB`. */
export function byteWords(bytes: number | null): string {
  if (bytes === null) return UNKNOWN
  let [size, unit] = [bytes, 'B']
  for (const next of UNITS) {
    if (size < 1024) break
    ;[size, unit] = [size / 1024, next]
  }
  return unit === 'B' ? `${whole(size)} B` : `${size.toFixed(1)} ${unit}`
}
