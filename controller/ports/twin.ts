/** The cluster state from which a simulation can continue, and the results that the simulator returns. */
import type { TaskRequest } from '../../protocol/task.ts'
import type { DurationMs, Instant, Mib, SwapMethod } from '../../protocol/units.ts'
import type { ConfigFields } from '../model/config.ts'
import type { Group } from '../model/group.ts'
import type { NodeStatus } from '../model/node.ts'
import type { NodeRecord, TaskRecord } from './store.ts'

/** The live state at one instant, as the store would keep it. */
export interface ClusterSnapshot {
  readonly at: Instant
  readonly config: ConfigFields
  /** By registration. */
  readonly nodes: readonly SnapshotNode[]
  readonly groups: readonly Group[]
  /** Open tasks: placed ones by submission, then pending ones in queue order. */
  readonly tasks: readonly TaskRecord[]
}

export interface SnapshotNode extends NodeRecord {
  readonly status: NodeStatus
}

/** Recent history, as far as it is kept. */
export interface RecentPast {
  readonly from: Instant
  readonly to: Instant
  /** Tasks that were submitted since `from` and have ended, in any order. */
  readonly ended: readonly TaskRecord[]
  /** Lengths of the periods in which resident tasks did or did not want the GPU. */
  readonly runs: ActivityRuns
  /** Speeds of nodes with observations. */
  readonly speeds: readonly NodeSpeeds[]
}

/** How fast a node swaps and starts tasks, from its latest swaps and starts. */
export interface NodeSpeeds {
  readonly nodeId: string
  /** Swap methods with at least one observed copy. */
  readonly methods: readonly MethodSpeeds[]
  /** From the order to start until the task runs: the median; 0 while there are too few. */
  readonly starts: { readonly observed: number; readonly ms: DurationMs }
  readonly latestAt: Instant
}

export interface MethodSpeeds {
  readonly method: SwapMethod
  readonly out: FittedCopies
  readonly in: FittedCopies
  /** Residual VRAM of a task on each of its GPUs: the median. */
  readonly residualMib: Mib
}

/** time = fixedMs + size / mibPerS. */
export interface FittedCopies {
  readonly fixedMs: DurationMs
  readonly mibPerS: number
  /** Number of copies behind it, the latest. */
  readonly observed: number
  /** Median relative deviation of those copies from the fit and from the profile, percent; null: none. */
  readonly errorPercent: number | null
  readonly profileErrorPercent: number | null
}

export interface ActivityRuns {
  readonly wantingMs: readonly DurationMs[]
  readonly idleMs: readonly DurationMs[]
}

/** Why there is no forecast. */
export interface NoForecast {
  readonly reason: 'NO_HISTORY' | 'DRIFT' | 'TOO_LARGE' | 'NOT_YET' | 'FAILED'
  /** One sentence. */
  readonly detail: string
}

/** The basis of a forecast. */
export interface ForecastBasis {
  /** The instant of the live state. */
  readonly at: Instant
  readonly horizonMs: DurationMs
  /** Number of runs, each with other samples of the unknown values. */
  readonly runs: number
  readonly assumes: readonly string[]
}

/** Predicted first starts of waiting tasks. */
export interface StartForecast extends ForecastBasis {
  readonly starts: ReadonlyMap<string, TaskStartForecast>
}

/** Instants; null: in that share of the runs it did not start within the horizon. */
export interface TaskStartForecast {
  readonly p50: Instant | null
  readonly p90: Instant | null
  /** Share of the runs in which it did not start within the horizon, 0 to 1. */
  readonly notWithinHorizon: number
}

export const TWIN_METRICS = [
  'queue_wait_s',
  'starvation_percent',
  'utilization_percent',
  'swap_outs_per_hour',
] as const
export type TwinMetric = (typeof TWIN_METRICS)[number]

/** A change of the settings to evaluate. */
export interface SettingsChange {
  readonly config?: Partial<ConfigFields>
  readonly node?: {
    readonly id: string
    readonly overcommitPercent?: number | null
    readonly reserveMib?: number | null
  }
}

/** The same samples with the current and with the changed settings. */
export interface ChangeForecast extends ForecastBasis {
  readonly metrics: Readonly<Record<TwinMetric, MetricChange | null>>
  readonly courses: ForecastCourses
}

/** Metrics over the horizon: for each interval, over the runs. */
export interface ForecastCourses {
  /** Ends of the intervals since `at`, ascending, the last is the horizon; the first begins at 0. */
  readonly endsMs: readonly DurationMs[]
  readonly metrics: Readonly<
    Record<TwinMetric, { readonly before: ForecastBand; readonly after: ForecastBand }>
  >
}

/** One for each interval; null: no run had anything to measure. */
export interface ForecastBand {
  readonly p10: readonly (number | null)[]
  readonly p50: readonly (number | null)[]
  readonly p90: readonly (number | null)[]
}

/** Differences are of pairs: with the change minus without. */
export interface MetricChange {
  /** Medians over the runs. */
  readonly before: number
  readonly after: number
  readonly difference: { readonly p10: number; readonly p50: number; readonly p90: number }
  /**
   * Share of the pairs whose difference has the sign of the median, 0 to 1; for a median of 0 the share of
   * equal pairs.
   */
  readonly agreement: number
  readonly verdict: 'rises' | 'falls' | 'stays' | 'unclear'
}

/** Predicted and actual values of an interval. */
export interface DriftEntry {
  readonly from: Instant
  readonly to: Instant
  readonly metrics: Readonly<Record<TwinMetric, DriftPoint | null>>
}

export interface DriftPoint {
  readonly p10: number
  readonly p50: number
  readonly p90: number
  readonly actual: number
  /** Distance of the actual value from the median, in widths of the band. */
  readonly score: number
}

export interface DriftReport {
  /** `unknown`: too few intervals have been compared. */
  readonly state: 'unknown' | 'steady' | 'drifting'
  /** Mean over the latest intervals; null: none compared. */
  readonly scores: Readonly<Record<TwinMetric, number | null>>
  readonly threshold: number
  /** Why there is no prediction now; null: there is one, or will be. */
  readonly because: NoForecast | null
  /** Oldest first; bounded. */
  readonly history: readonly DriftEntry[]
}

/**
 * Simulates the live state forward; provided by the composition root. Runs happen outside the controller's
 * thread.
 */
export interface Twin {
  /**
   * The live state as a scenario file, in parts. All parts describe this instant, however slowly they are
   * read.
   */
  snapshot(): Promise<Iterable<string>>
  /** At most some seconds old, or computed now. @param isAnew forces a new one from the current state */
  starts(isAnew?: boolean): Promise<StartForecast | NoForecast>
  /** The current forecast; a new one is started if it is old. Null: none yet. */
  latestStarts(): StartForecast | NoForecast | null
  /**
   * Starts of the waiting tasks and of one more, TRIED_TASK_ID, as if it were submitted now. Bounded in time.
   */
  tryTask(request: TaskRequest): Promise<StartForecast | NoForecast>
  /** Bounded in time. */
  tryChange(change: SettingsChange): Promise<ChangeForecast | NoForecast>
  drift(): DriftReport
  /** Returns the speeds of nodes with observations, in the order of their first observation. */
  speeds(): readonly NodeSpeeds[]
}

/** Id of a task that is only tried. */
export const TRIED_TASK_ID = '00000000-0000-0000-0000-000000000000'

export function isForecast<T extends ForecastBasis>(forecast: T | NoForecast): forecast is T {
  return 'runs' in forecast
}
