/** Formats instants as text, in the time zone that is chosen for the page. */
import { zone, type Zone } from '../state/zone.ts'
import { UNKNOWN } from './figures.ts'

/** `2026-01-02 03:04:05` in the zone of the browser, `2026-01-02 03:04:05Z` in UTC. */
export function clockTime(at: string | number | null | undefined, within: Zone = zone()): string {
  if (at === null || at === undefined) return UNKNOWN
  const date = new Date(at)
  if (within === 'utc') return `${date.toISOString().slice(0, 19).replace('T', ' ')}Z`
  const pad2 = (value: number): string => String(value).padStart(2, '0')
  const day = `${date.getFullYear()}-${pad2(date.getMonth() + 1)}-${pad2(date.getDate())}`
  return `${day} ${pad2(date.getHours())}:${pad2(date.getMinutes())}:${pad2(date.getSeconds())}`
}

/** `UTC+02:00`, `UTC−03:30`: the offset of the zone of the browser at an instant. */
export function localOffset(at: number): string {
  const minutes = -new Date(at).getTimezoneOffset()
  const size = Math.abs(minutes)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `UTC${minutes < 0 ? '−' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`
}
