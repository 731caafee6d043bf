/**
 * How a snapshot captures the fields of the live objects. A field that is not listed is captured as a value;
 * one whose type is no JSON value must be listed, or this does not compile.
 */
import type { Gpu, Node, Placement, QueueEntry, Reservation, Task } from '../../model/placement.ts'
import type { GpuIndex, LiveGpu, LiveNode, LivePlacement, LiveTask, NodePool, TaskQueue } from '../facts.ts'
import type { Kind } from './kinds.ts'

type Reference = Task | Node | Gpu | Placement | QueueEntry | Reservation | TaskQueue | NodePool | GpuIndex
type Unserializable =
  Reference | ReadonlyMap<never, never> | ReadonlySet<never> | ((...args: never) => unknown)
type IsValue<T> = T extends Unserializable ? false : T extends readonly (infer E)[] ? IsValue<E> : true
type Listed<T> = { [K in keyof T]-?: false extends IsValue<T[K]> ? K : never }[keyof T]
/** Null: not captured. It is rebuilt, or the owner of the object captures it. */
export type Fields<T> = { readonly [K in Listed<T>]: Kind | null } & { readonly [K in keyof T]?: Kind | null }

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
