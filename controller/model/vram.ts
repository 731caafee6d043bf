/**
 * Capacity and admission arithmetic of one GPU: integers only, semantics section 1 (docs/architecture.md
 * links it). Every figure is MiB on one GPU unless its name says otherwise.
 */
import type { Mib, NoSwap, Percent } from '../../protocol/units.ts'

/**
 * E: effective schedulable VRAM. Multiplies before it divides: `floor(P × (1 + pct / 100))` is wrong for
 * 49140 MiB at 15%.
 */
export function effectiveSchedulableMib(physicalMib: Mib, overcommitPercent: Percent): Mib {
  return Math.floor((physicalMib * (100 + overcommitPercent)) / 100)
}

/** C: the maximum that may be resident at once. */
export function residentCapacityMib(physicalMib: Mib, reserveMib: Mib, foreignMib: Mib): Mib {
  return Math.max(0, physicalMib - reserveMib - foreignMib)
}

/** L: the commit limit. At 0% no new placement may wait for a swap, so the resident capacity caps it. */
export function commitLimitMib(physicalMib: Mib, overcommitPercent: Percent, capacityMib: Mib): Mib {
  const effective = effectiveSchedulableMib(physicalMib, overcommitPercent)
  return overcommitPercent === 0 ? Math.min(effective, capacityMib) : effective
}

export type OvercommitSource = 'node' | 'global'

/**
 * The percentage in effect on a node: its override, 0 included, otherwise the global default (specification
 * 2.2).
 */
export function resolveOvercommit(
  globalPercent: Percent,
  override: Percent | null,
): { percent: Percent; source: OvercommitSource } {
  return override === null
    ? { percent: globalPercent, source: 'global' }
    : { percent: override, source: 'node' }
}

/** The settings in effect on a node, whatever their source. */
export interface NodeSettings {
  readonly overcommitPercent: Percent
  /** Per GPU. */
  readonly reserveMib: Mib
}

/** Returns the settings of a node: its overrides, otherwise the global values. */
export function settingsOn(
  node: { readonly overcommitOverride: Percent | null; readonly reserveOverrideMib: Mib | null },
  global: { readonly overcommitPercent: Percent; readonly safetyReserveMib: Mib },
): NodeSettings {
  return {
    overcommitPercent: resolveOvercommit(global.overcommitPercent, node.overcommitOverride).percent,
    reserveMib: node.reserveOverrideMib ?? global.safetyReserveMib,
  }
}

/** The load of a GPU, as admission sees it. */
export interface GpuLoad {
  /** P */
  readonly physicalMib: Mib
  /** R */
  readonly reserveMib: Mib
  /** C */
  readonly capacityMib: Mib
  /** L */
  readonly limitMib: Mib
  /** N: placed noswap demands, pending claimants included. */
  readonly noswapMib: Mib
  /** S: placed swappable demands, resident or not, pending claimants included. */
  readonly swappableMib: Mib
  /** free(e) for an entry without reserved VRAM. */
  readonly freeMib: Mib
  /** The largest placed swappable demand; 0 if none exists. */
  readonly largestSwappableMib: Mib
}

/** The arithmetic verdicts of semantics section 1; the refusals are also the reasons shown to users. */
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
 * May a shared-mode demand be placed on this GPU, whatever the eligibility of victims? The first refusal in
 * this order is the verdict.
 * 1. INVALID, NEVER_FITS: the demand is invalid, or larger than physical minus reserve.
 * 2. noswap: NO_PHYSICAL_FREE when noswap and foreign memory alone leave too little, WOULD_STRAND, then FITS
 *    or NO_PHYSICAL_FREE. The commit limit does not apply (specification 2.3 and 8); `maySwapOutFor` says
 *    whether the last one becomes a wait for victims.
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
