/** The cost of a swap on GPU 0, in the form of the simulator's profiles. */
import type { DurationMs, Mib } from '../../protocol/units.ts'
import type { SwapProfile } from '../../simulator/scenario/swap-profiles.ts'
import type { CudaProgram } from './cuda-program.ts'
import type { GpuHost } from './gpu-host.ts'
import { expect, say } from './say.ts'

/** Share of the free memory of the GPU. */
const LARGE_PERCENT = 20
const SMALL_PERCENT = 5
const ROUNDS = 3

export interface TimedSwap {
  readonly direction: 'out' | 'in'
  readonly mib: Mib
  readonly ms: DurationMs
}

/** Swaps a large and a small program alternately; null when no profile results. */
export async function calibrate(host: GpuHost, program: string, room: Mib): Promise<SwapProfile | null> {
  const sizes = [SMALL_PERCENT, LARGE_PERCENT].map((share) => Math.floor((room * share) / 100))
  const programs: CudaProgram[] = []
  for (const mib of sizes) programs.push(await host.start(program, `of-${mib}`, mib))
  const swaps: TimedSwap[] = []
  for (let round = 0; round < ROUNDS; round++) {
    for (const each of programs) {
      for (const direction of ['out', 'in'] as const) {
        swaps.push({ direction, mib: each.vramMib, ms: await host.swap(direction, each) })
      }
    }
  }
  for (const each of programs) {
    expect(await each.isIntact(), `${each.taskId} finds its data unchanged after ${ROUNDS} swaps`)
    await each.end()
  }
  const profile = fitProfile(swaps)
  if (profile === null) say('no profile: the larger program took no longer')
  else {
    say(
      `out: ${profile.outMibPerS} MiB/s + ${profile.outFixedMs} ms; in: ${profile.inMibPerS} MiB/s + ` +
        `${profile.inFixedMs} ms`,
    )
    say(`for simulator/scenario/swap-profiles.ts: ${JSON.stringify(profile)}`)
  }
  return profile
}

/** t = fixed + bytes / bandwidth through the medians of two sizes; null when the larger took no longer. */
export function fitProfile(swaps: readonly TimedSwap[]): SwapProfile | null {
  const out = line(swaps.filter(({ direction }) => direction === 'out'))
  const back = line(swaps.filter(({ direction }) => direction === 'in'))
  if (out === null || back === null) return null
  return {
    outMibPerS: out.mibPerS,
    inMibPerS: back.mibPerS,
    outFixedMs: out.fixedMs,
    inFixedMs: back.fixedMs,
  }
}

function line(swaps: readonly TimedSwap[]): { mibPerS: number; fixedMs: number } | null {
  const sizes = [...new Set(swaps.map(({ mib }) => mib))].sort((a, b) => a - b)
  const [small, large] = [sizes[0], sizes.at(-1)]
  if (small === undefined || large === undefined || small === large) return null
  const [smallMs, largeMs] = [small, large].map((size) =>
    median(swaps.filter(({ mib }) => mib === size).map(({ ms }) => ms)),
  )
  if (smallMs === undefined || largeMs === undefined || largeMs <= smallMs) return null
  const mibPerMs = (large - small) / (largeMs - smallMs)
  return {
    mibPerS: Math.max(1, Math.round(mibPerMs * 1000)),
    fixedMs: Math.max(0, Math.round(smallMs - small / mibPerMs)),
  }
}

function median(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]
}
