/**
 * The time range of charts, in the URL, so that a shared link shows the same range: `?range=-6h` ends now;
 * `?from=…&to=…` and `?at=…` are fixed.
 */
import { useSearchParams } from '@solidjs/router'
import type { Accessor } from 'solid-js'
import { MIN_SPAN_MS, spanOf, textOf, type Span } from './span.ts'

export const RANGES = [
  { value: '-15m', name: '15 minutes', ms: 900_000 },
  { value: '-1h', name: '1 hour', ms: 3_600_000 },
  { value: '-6h', name: '6 hours', ms: 21_600_000 },
  { value: '-24h', name: '1 day', ms: 86_400_000 },
  { value: '-7d', name: '7 days', ms: 604_800_000 },
] as const

export const DEFAULT_RANGE = '-1h'

export function useSpan(): Accessor<Span | null> {
  const [search] = useSearchParams()
  return () => spanOf(search)
}

/** Sets a fixed range, in milliseconds since the epoch; widened to at least a minute. */
export function useZoom(): (from: number, to: number) => void {
  const [, setSearch] = useSearchParams()
  return (from, to) => {
    const missing = Math.max(0, MIN_SPAN_MS - (to - from)) / 2
    setSearch({ from: textOf(from - missing), to: textOf(to + missing), at: null })
  }
}

export function useRange(): readonly [range: Accessor<string>, setRange: (range: string) => void] {
  const [search, setSearch] = useSearchParams()
  const range = (): string => RANGES.find(({ value }) => value === search['range'])?.value ?? DEFAULT_RANGE
  return [
    range,
    (value) =>
      setSearch(
        { range: value === DEFAULT_RANGE ? null : value, at: null, from: null, to: null },
        { replace: true },
      ),
  ]
}
