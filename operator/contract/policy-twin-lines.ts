/** The forecast of the twin for a policy, in the words of `kubectl apply --dry-run=server`. */
import type { DurationMs } from '../../protocol/units.ts'
import { clusterPolicyFaults, nodePolicyFaults } from './overcommit.ts'
import {
  CLUSTER_GPU_POLICY,
  type ClusterGPUPolicy,
  VENDOR_NODE_POLICY,
  type VendorNodePolicy,
} from './policies.ts'

/** A policy as it would be after the dry run. */
export interface AskedPolicy {
  readonly kind: string
  readonly policy: ClusterGPUPolicy | VendorNodePolicy
}

/** Medians over the runs. */
interface Figures {
  readonly started: number
  /** Null: longer than the horizon. */
  readonly waitMs: DurationMs | null
  readonly swapOutsPerHour: number
}

interface SimulatedChange {
  readonly horizonMs: DurationMs
  readonly runs: number
  readonly waiting: number
  /** False: no pod has been seen to change between work and idleness. */
  readonly isActivityKnown: boolean
  readonly before: Figures
  readonly after: Figures
}

/** Null: it is not a policy that the API server would store. */
export function askedPolicyOf(kind: unknown, policy: unknown): AskedPolicy | null {
  if (!isRecord(policy) || !isRecord(policy['metadata']) || !isRecord(policy['spec'])) return null
  if (kind === CLUSTER_GPU_POLICY.kind) {
    const given = policy as unknown as ClusterGPUPolicy
    return clusterPolicyFaults(given).length === 0 ? { kind, policy: given } : null
  }
  if (kind !== VENDOR_NODE_POLICY.kind) return null
  const given = policy as unknown as VendorNodePolicy
  return nodePolicyFaults(given, []).length === 0 ? { kind, policy: given } : null
}

export function simulatedLines(change: SimulatedChange): readonly string[] {
  const { horizonMs, runs, waiting, before, after } = change
  const within = time(horizonMs)
  const wait = (ms: DurationMs | null): string => (ms === null ? `more than ${within}` : time(ms))
  const swaps = `swap-outs ${before.swapOutsPerHour.toFixed(1)} → ${after.swapOutsPerHour.toFixed(1)} an hour`
  const pods =
    waiting === 0
      ? 'no pod waits now'
      : `${after.started} of ${waiting} waiting ${waiting === 1 ? 'pod' : 'pods'} would start ` +
        `within ${within} (without the change ${before.started}); ` +
        `median wait from now ${wait(before.waitMs)} → ${wait(after.waitMs)}`
  const activity = change.isActivityKnown ? 'and idles as so far' : 'or idles as it does now'
  return [
    `forecast: ${pods}; ${swaps}.`,
    `forecast: simulated from the current state in ${runs} pairs of runs over ${within}; ` +
      `every pod stays and works ${activity}, and no pod is added.`,
  ]
}

/** @param why a clause without a period */
export function unsimulated(why: string): string {
  return `forecast: waiting times were not simulated, because ${why}.`
}

function time(ms: DurationMs): string {
  const minutes = Math.round(ms / 60_000)
  if (minutes < 1) return 'less than 1 min'
  return minutes < 120 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
