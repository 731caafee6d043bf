/**
 * How the fields of the live objects are captured: by a snapshot, and as records of the store. In a snapshot
 * a field that is not listed is a value; one whose type is no JSON value must be listed, or this does not
 * compile.
 */
import type { PlacementRecord, TaskRecord } from '../ports/store.ts'
import type { LiveGpu, LiveNode, LivePlacement, LiveTask } from './facts.ts'
import type { Fields } from './snapshot/kinds.ts'

export const TASK: Fields<LiveTask> = {
  placement: null,
  placementEntry: 'entry',
  queue: null,
  queueEntry: null,
  refusedBy: 'map',
  avoidedNow: 'nodes',
}

export const PLACEMENT: Fields<LivePlacement> = {
  task: null,
  node: null,
  gpus: null,
  eligibilityTimerAt: null,
  leavesFor: 'entry',
  entry: 'entry',
}

export const GPU: Fields<LiveGpu> = {
  node: null,
  placements: 'placements',
  pendingClaimants: 'entries',
  claimants: 'entries',
  reservations: 'reservations',
  exclusiveTask: 'task',
  rounds: 'rounds',
  meter: 'meter',
  swaps: 'copy',
  fairnessScopes: null,
  isStale: null,
  isLedgerStale: null,
  figures: 'copy',
  indexes: null,
}

export const NODE: Fields<LiveNode> = {
  contact: 'copy',
  swaps: 'copy',
  entryReservations: null,
  gpus: null,
  queue: null,
  collector: 'entry',
  rank: null,
  pools: null,
  isTouched: null,
  cancelDrain: 'timer',
  cancelTrial: 'timer',
  cancelWake: 'timer',
  cancelEager: 'timer',
}

/**
 * Fields that records of the store have under the same name. The others are renamed, derived or not stored.
 */
export const STORED_TASK = [
  'state',
  'isHeld',
  'attempt',
  'pendingSince',
  'firstStartedAt',
  'finishedAt',
  'exitCode',
  'endReason',
  'swapOuts',
  'clientWants',
  'lastEventSeq',
] as const satisfies readonly (keyof LiveTask & keyof TaskRecord)[]

export const STORED_PLACEMENT = [
  'demandMib',
  'noswap',
  'residency',
  'generation',
  'assignedAt',
  'startedAt',
  'wantsGpu',
  'wantsSince',
  'idleSince',
  'residentSince',
  'heldGrowth',
  'stopping',
  'confirmed',
  'isInDoubt',
] as const satisfies readonly (keyof LivePlacement & keyof PlacementRecord)[]

export function pick<T, K extends keyof T>(from: T, names: readonly K[]): Pick<T, K> {
  const picked = {} as Pick<T, K>
  for (const name of names) picked[name] = from[name]
  return picked
}
