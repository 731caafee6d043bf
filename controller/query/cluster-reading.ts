/** Read-only types of the cluster's state, for checks that recompute its sums and the order of its queues. */
import type { Cluster } from '../state/cluster.ts'
import type { LiveTask } from '../state/facts.ts'

/** A type without its setters, all the way down. */
type Reading<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<K, Reading<V>>
    : T extends object
      ? { readonly [K in keyof T]: Reading<T[K]> }
      : T

export type TaskReading = Reading<LiveTask>
export type PlacementReading = NonNullable<TaskReading['placement']>
export type EntryReading = NonNullable<TaskReading['placementEntry']>
export type NodeReading = PlacementReading['node']
export type GpuReading = PlacementReading['gpus'][number]

type Fields =
  | 'nodes'
  | 'policy'
  | 'pendingCount'
  | 'queuedEntries'
  | 'swapTotals'
  | 'recovery'
  | 'isStoreBehind'
  | 'aheadCount'

/** The live state itself: it changes after every input. */
export interface ClusterReading extends Reading<Pick<Cluster, Fields>> {
  /** Pending and placed tasks. */
  readonly tasks: ReadonlyMap<string, TaskReading>
  /** GPUs that waiting tasks demand, and the number of those tasks. */
  readonly waiting: { readonly gpus: number; readonly tasks: number }
  readonly poolReservations: { readonly size: number }
  /** The next cycle has something to decide. */
  hasWork(): boolean
  /** Some node of the task's pool could run it. */
  isFeasible(task: TaskReading): boolean
}
