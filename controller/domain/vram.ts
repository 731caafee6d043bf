/**
 * Capacity and admission arithmetic of one GPU: integers only, semantics section 1 (docs/architecture.md
 * links it). Every figure is MiB on one GPU unless its name says otherwise.
 */
import type { Mib, NoSwap, Percent } from '../../protocol/units.ts'

/**
 * E: effective schedulable VRAM. Multiplies before it divides: `floor(P × (1 + pct / 100))` is wrong for
 * 49140 MiB at 15 %.
 */
export function effectiveSchedulableMib(physicalMib: Mib, overcommitPercent: Percent): Mib {
  return Math.floor((physicalMib * (100 + overcommitPercent)) / 100)
}

/** C: what may be resident at once. */
export function residentCapacityMib(physicalMib: Mib, reserveMib: Mib, foreignMib: Mib): Mib {
  return Math.max(0, physicalMib - reserveMib - foreignMib)
}

/**
 * L: the commit limit. At 0 % nothing newly placed may have to wait for a swap, so the resident capacity caps
 * it.
 */
export function commitLimitMib(physicalMib: Mib, overcommitPercent: Percent, capacityMib: Mib): Mib {
  const effective = effectiveSchedulableMib(physicalMib, overcommitPercent)
  return overcommitPercent === 0 ? Math.min(effective, capacityMib) : effective
}

export type OvercommitSource = 'node' | 'global'

/**
 * Which percentage holds on a node: its override, 0 included, else the global default (specification 2.2).
 */
export function resolveOvercommit(
  globalPercent: Percent,
  override: Percent | null,
): { percent: Percent; source: OvercommitSource } {
  return override === null
    ? { percent: globalPercent, source: 'global' }
    : { percent: override, source: 'node' }
}

/** What a GPU holds, as admission sees it. */
export interface GpuLoad {
  /** P */
  readonly physicalMib: Mib
  /** R */
  readonly reserveMib: Mib
  /** C */
  readonly capacityMib: Mib
  /** L */
  readonly limitMib: Mib
  /** N: placed noswap demands, pending owners included. */
  readonly noswapMib: Mib
  /** S: placed swappable demands, resident or not, pending owners included. */
  readonly swappableMib: Mib
  /** free(e) for an entry that owns nothing yet. */
  readonly freeMib: Mib
  /** The largest placed swappable demand; 0 when there is none. */
  readonly largestSwappableMib: Mib
}

/** The arithmetic verdicts of semantics section 1; the refusals are also the reasons shown to people. */
export type AdmissionVerdict =
  | 'INVALID'
  | 'NEVER_FITS'
  | 'NEVER_RESIDENT'
  | 'NO_PHYSICAL_FREE'
  | 'WOULD_STRAND'
  | 'COMMIT_LIMIT'
  | 'FITS_AFTER_SWAP'
  | 'FITS'

/**
 * May a shared-mode demand be placed on this GPU, the eligibility of victims left aside? The first refusal in this order is the verdict.
 * 1. INVALID, NEVER_FITS: the demand is no demand, or larger than physical minus reserve.
 * 2. noswap: NO_PHYSICAL_FREE when noswap and foreign memory alone leave too little, WOULD_STRAND, then FITS or NO_PHYSICAL_FREE.
 *    The commit limit does not apply (specification 2.3 and 8); `maySwapOutFor` says whether the last one becomes a wait for victims.
 * 3. swappable: NEVER_RESIDENT, COMMIT_LIMIT, then FITS or FITS_AFTER_SWAP.
 */
export function admit(gpu: GpuLoad, demandMib: Mib, noswap: NoSwap): AdmissionVerdict {
  if (!Number.isSafeInteger(demandMib) || demandMib <= 0) return 'INVALID'
  if (demandMib > gpu.physicalMib - gpu.reserveMib) return 'NEVER_FITS'
  const besideNoswap = gpu.capacityMib - gpu.noswapMib
  if (noswap === 1) {
    if (demandMib > besideNoswap) return 'NO_PHYSICAL_FREE'
    if (gpu.largestSwappableMib > besideNoswap - demandMib) return 'WOULD_STRAND'
    return demandMib <= gpu.freeMib ? 'FITS' : 'NO_PHYSICAL_FREE'
  }
  if (demandMib > besideNoswap) return 'NEVER_RESIDENT'
  if (gpu.noswapMib + gpu.swappableMib + demandMib > gpu.limitMib) return 'COMMIT_LIMIT'
  return demandMib <= gpu.freeMib ? 'FITS' : 'FITS_AFTER_SWAP'
}

/**
 * Returns true if tasks may be swapped out to place a task. With overcommit off, a noswap task waits until
 * VRAM is free (semantics section 1).
 */
export function maySwapOutFor(noswap: NoSwap, overcommitPercent: Percent): boolean {
  return noswap === 0 || overcommitPercent > 0
}
