/** The time range of charts, in the URL (`?range=-6h`), so that an address shows what its sender saw. */
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

export function useRange(): readonly [range: Accessor<string>, setRange: (range: string) => void] {
  const [search, setSearch] = useSearchParams()
  const range = (): string => RANGES.find(({ value }) => value === search['range'])?.value ?? DEFAULT_RANGE
  return [range, (value) => setSearch({ range: value === DEFAULT_RANGE ? null : value }, { replace: true })]
}
