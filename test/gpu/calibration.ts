import type { SwapProfile } from '../../simulator/fleet/swap-profiles.ts'

export interface TimedSwap {
  readonly direction: 'out' | 'in'
  readonly mib: number
  readonly ms: number
}

/** t = fixed + bytes / bandwidth through the medians of two sizes; null when the larger did not take longer. */
export function fitProfile(swaps: readonly TimedSwap[]): SwapProfile | null {
  const out = line(swaps.filter(({ direction }) => direction === 'out'))
  const back = line(swaps.filter(({ direction }) => direction === 'in'))
  if (out === null || back === null) return null
  return { outMibPerS: out.mibPerS, inMibPerS: back.mibPerS, outFixedMs: out.fixedMs, inFixedMs: back.fixedMs }
}

function line(swaps: readonly TimedSwap[]): { mibPerS: number; fixedMs: number } | null {
  const sizes = [...new Set(swaps.map(({ mib }) => mib))].sort((a, b) => a - b)
  const [small, large] = [sizes[0], sizes.at(-1)]
  if (small === undefined || large === undefined || small === large) return null
  const [smallMs, largeMs] = [small, large].map((size) => median(swaps.filter(({ mib }) => mib === size).map(({ ms }) => ms)))
  if (smallMs === undefined || largeMs === undefined || largeMs <= smallMs) return null
  const mibPerMs = (large - small) / (largeMs - smallMs)
  return { mibPerS: Math.max(1, Math.round(mibPerMs * 1000)), fixedMs: Math.max(0, Math.round(smallMs - small / mibPerMs)) }
}

function median(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]
}
