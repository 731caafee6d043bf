/**
 * How long a swap takes: t = fixed + bytes / bandwidth, one transfer at a time per GPU (design "The
 * simulator", Model of a GPU). Every number may be stated in a scenario instead.
 */
import type { DurationMs, Mib } from '../../protocol/units.ts'

export interface SwapProfile {
  /** Device to host memory, 1 or more. */
  readonly outMibPerS: number
  /** Host memory to device, 1 or more. */
  readonly inMibPerS: number
  /** Fixed time of every swap-out before the first byte moves. */
  readonly outFixedMs: DurationMs
  readonly inFixedMs: DurationMs
}

/** Speed of a method in which the task moves its data itself. */
export interface MethodProfile {
  readonly swap: SwapProfile
  /** What it keeps in VRAM on each GPU. */
  readonly residualMib: Mib
}

/**
 * What the NVIDIA driver's own checkpoint does: 3 GiB/s out + 0.5 s, 5 GiB/s in + 0.8 s. Measured elsewhere:
 * torch_memory_saver on an L20 2.4 out and 5.3 GiB/s in; toggles on an H100 3.5 to 5.3 GiB/s; dynamo's
 * persistent helper 0.83 s.
 */
const STOCK_DRIVER: SwapProfile = { outMibPerS: 3072, inMibPerS: 5120, outFixedMs: 500, inFixedMs: 800 }

/** A new command per action has to attach to the driver each time. */
const CLI_EXEC_ATTACH_MS = 2700

export const SWAP_PROFILES = {
  'stock-driver': STOCK_DRIVER,
  /**
   * Pinned host memory over PCIe 3, 4, 5: 12, 24, 45 GiB/s + 0.1 s out, 0.3 s in (BaM; torch_memory_saver; a
   * snapshot on a B200).
   */
  'pinned-gen3': pinned(12),
  'pinned-gen4': pinned(24),
  'pinned-gen5': pinned(45),
  /**
   * What we measured of it with `make test-gpu`: H100 80GB, driver 580.159.04, transparent huge pages on
   * request only (docs/gpu-server.md, "Measured").
   */
  'h100-driver-580': { outMibPerS: 2000, inMibPerS: 4700, outFixedMs: 200, inFixedMs: 200 },
  'cli-exec': {
    ...STOCK_DRIVER,
    outFixedMs: STOCK_DRIVER.outFixedMs + CLI_EXEC_ATTACH_MS,
    inFixedMs: STOCK_DRIVER.inFixedMs + CLI_EXEC_ATTACH_MS,
  },
} as const satisfies Readonly<Record<string, SwapProfile>>

export type SwapProfileName = keyof typeof SWAP_PROFILES
export const SWAP_PROFILE_NAMES = Object.keys(SWAP_PROFILES) as readonly SwapProfileName[]

/**
 * Returns the duration of one swap that uses the GPU's transfer alone; rounded up to whole ms. Exact while
 * mib × 1000 stays below 2^52.
 */
export function swapDurationMs(profile: SwapProfile, direction: 'out' | 'in', mib: Mib): DurationMs {
  switch (direction) {
    case 'out':
      return profile.outFixedMs + Math.ceil((mib * 1000) / profile.outMibPerS)
    case 'in':
      return profile.inFixedMs + Math.ceil((mib * 1000) / profile.inMibPerS)
  }
}

function pinned(gibPerS: number): SwapProfile {
  return { outMibPerS: gibPerS * 1024, inMibPerS: gibPerS * 1024, outFixedMs: 100, inFixedMs: 300 }
}
