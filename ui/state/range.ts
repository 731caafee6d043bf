/** The time range of charts, in the URL (`?range=-6h`), so that a shared link shows the same range. */
import { useSearchParams } from '@solidjs/router'
import type { Accessor } from 'solid-js'

export const RANGES = [
  { value: '-15m', name: '15 minutes' },
  { value: '-1h', name: '1 hour' },
  { value: '-6h', name: '6 hours' },
  { value: '-24h', name: '1 day' },
  { value: '-7d', name: '7 days' },
] as const

export const DEFAULT_RANGE = '-1h'

/** Range before and after an instant given by `?at=`. */
const AROUND_MS = 30 * 60_000

/** `?at=`: the range around that instant, instead of a range that ends now. */
export interface Around {
  readonly at: string
  readonly from: string
  readonly to: string
}

export function useAround(): Accessor<Around | null> {
  const [search] = useSearchParams()
  return () => {
    const at = typeof search['at'] === 'string' ? Date.parse(search['at']) : NaN
    if (Number.isNaN(at)) return null
    const instant = (ms: number): string => new Date(ms).toISOString()
    return { at: instant(at), from: instant(at - AROUND_MS), to: instant(at + AROUND_MS) }
  }
}

export function useRange(): readonly [range: Accessor<string>, setRange: (range: string) => void] {
  const [search, setSearch] = useSearchParams()
  const range = (): string => RANGES.find(({ value }) => value === search['range'])?.value ?? DEFAULT_RANGE
  return [
    range,
    (value) => setSearch({ range: value === DEFAULT_RANGE ? null : value, at: null }, { replace: true }),
  ]
}
