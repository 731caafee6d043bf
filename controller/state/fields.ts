/**
 * How a snapshot captures the fields of the live objects (`ports/store.ts`: which of them records have). A
 * field that is not listed is a value; one whose type is no JSON value must be listed, or this does not
 * compile.
 */
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
  eligible: null,
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
