/**
 * The time range of charts, in the URL, so that a shared link shows the same range: `?range=-6h` ends now;
 * `?from=…&to=…` and `?at=…` are fixed.
 */
import { useSearchParams } from '@solidjs/router'
import { createEffect, type Accessor } from 'solid-js'
import { MIN_SPAN_MS, spanOf, textOf, type Span } from './span.ts'

export const RANGES = [
  { value: '-15m', name: '15 minutes', ms: 900_000 },
  { value: '-1h', name: '1 hour', ms: 3_600_000 },
  { value: '-6h', name: '6 hours', ms: 21_600_000 },
  { value: '-24h', name: '1 day', ms: 86_400_000 },
  { value: '-7d', name: '7 days', ms: 604_800_000 },
] as const

const DEFAULT_RANGE = '-1h'

/** The last range of this tab. */
let last: string = DEFAULT_RANGE

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

/** Links between pages have no range: a page that is opened by one gets the last range of this tab. */
export function keepRange(): void {
  const [search, setSearch] = useSearchParams()
  createEffect(() => {
    const range = rangeIn(search['range'])
    if (range !== null) last = range
    else if (last !== DEFAULT_RANGE && spanOf(search) === null) setSearch({ range: last }, { replace: true })
  })
}

export function useRange(): readonly [range: Accessor<string>, setRange: (range: string) => void] {
  const [search, setSearch] = useSearchParams()
  return [
    () => rangeIn(search['range']) ?? DEFAULT_RANGE,
    (value) => {
      last = value
      setSearch(
        { range: value === DEFAULT_RANGE ? null : value, at: null, from: null, to: null },
        { replace: true },
      )
    },
  ]
}

function rangeIn(text: string | readonly string[] | undefined): string | null {
  return RANGES.find(({ value }) => value === text)?.value ?? null
}
