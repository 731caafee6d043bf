/**
 * The cluster as a simulation may go on from it: what the controller hands over, and what it can be told by
 * whoever simulates.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { ConfigFields } from '../domain/config.ts'
import type { Group } from '../domain/group.ts'
import type { NodeStatus } from '../domain/node.ts'
import type { NodeRecord, TaskRecord } from './store.ts'

/** The live state in one instant, as the store would keep it. */
export interface ClusterSnapshot {
  readonly at: Instant
  readonly config: ConfigFields
  /** By registration. */
  readonly nodes: readonly SnapshotNode[]
  readonly groups: readonly Group[]
  /** Open tasks: the placed ones by submission, then the pending ones in the order of the queue. */
  readonly tasks: readonly TaskRecord[]
}

export interface SnapshotNode extends NodeRecord {
  readonly status: NodeStatus
}

/** What happened lately, as far as it is remembered. */
export interface RecentPast {
  readonly from: Instant
  readonly to: Instant
  /** Tasks that were submitted since `from` and have ended, in any order. */
  readonly ended: readonly TaskRecord[]
  /** How long tasks wanted the GPU at a stretch, or did not, while they were resident. */
  readonly runs: ActivityRuns
}

export interface ActivityRuns {
  readonly wantingMs: readonly DurationMs[]
  readonly idleMs: readonly DurationMs[]
}

/** Why there is no forecast. */
export interface NoForecast {
  readonly reason: 'NO_HISTORY' | 'DRIFT' | 'TOO_LARGE' | 'NOT_YET' | 'FAILED'
  /** In words for people. */
  readonly detail: string
}

/** What a forecast rests on. */
export interface ForecastBasis {
  /** Of the live state that was run on. */
  readonly at: Instant
  readonly horizonMs: DurationMs
  /** Runs, each with another draw of what is not known. */
  readonly runs: number
  readonly assumes: readonly string[]
}

/** When tasks that wait for their first start would start. */
export interface StartForecast extends ForecastBasis {
  readonly starts: ReadonlyMap<string, TaskStartForecast>
}

/** Instants; null: in so many runs it did not start within the horizon. */
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

/** A change of the settings, as it would be tried. */
export interface SettingsChange {
  readonly config?: Partial<ConfigFields>
  readonly node?: {
    readonly id: string
    readonly overcommitPercent?: number | null
    readonly reserveMib?: number | null
  }
}

/** The same draws with the settings as they are and as they would be. */
export interface ChangeForecast extends ForecastBasis {
  readonly metrics: Readonly<Record<TwinMetric, MetricChange | null>>
  readonly courses: ForecastCourses
}

/** How the figures go over the horizon: of each interval, over the runs. */
export interface ForecastCourses {
  /** Ends of the intervals since `at`, rising, the last is the horizon; the first begins at 0. */
  readonly endsMs: readonly DurationMs[]
  readonly metrics: Readonly<
    Record<TwinMetric, { readonly before: ForecastBand; readonly after: ForecastBand }>
  >
}

/** One for each interval; null: in no run there was anything to measure. */
export interface ForecastBand {
  readonly p10: readonly (number | null)[]
  readonly p50: readonly (number | null)[]
  readonly p90: readonly (number | null)[]
}

/** Differences are of pairs: with the change less without. */
export interface MetricChange {
  /** Medians over the runs. */
  readonly before: number
  readonly after: number
  readonly difference: { readonly p10: number; readonly p50: number; readonly p90: number }
  /**
   * Share of the pairs whose difference has the sign of the median, 0 to 1; of a median of 0 the share of
   * pairs that are equal.
   */
  readonly agreement: number
  readonly verdict: 'rises' | 'falls' | 'stays' | 'unclear'
}

/** What the twin foretold of an interval, and what came. */
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
  /** Distance of what came from the median, in widths of the band. */
  readonly score: number
}

export interface DriftReport {
  /** `unknown`: too few intervals have been compared. */
  readonly state: 'unknown' | 'steady' | 'drifting'
  /** Mean over the latest intervals; null: none compared. */
  readonly scores: Readonly<Record<TwinMetric, number | null>>
  readonly threshold: number
  /** Why nothing is foretold now; null: something is, or will be. */
  readonly because: NoForecast | null
  /** Oldest first; bounded. */
  readonly history: readonly DriftEntry[]
}

/**
 * Somebody who can run the live state on; whoever puts the process together fills it. Runs happen outside the
 * controller's thread.
 */
export interface Twin {
  /**
   * The live state as a scenario file, in parts; what it says is of this instant, however slowly it is taken.
   */
  snapshot(): Promise<Iterable<string>>
  /** At most some seconds old, or made now. @param isAnew made of the state as it is now */
  starts(isAnew?: boolean): Promise<StartForecast | NoForecast>
  /** The one that there is; another is begun when it is old. Null: there is none yet. */
  latestStarts(): StartForecast | NoForecast | null
  /** Bounded in time. */
  tryChange(change: SettingsChange): Promise<ChangeForecast | NoForecast>
  drift(): DriftReport
}

export function isForecast<T extends ForecastBasis>(forecast: T | NoForecast): forecast is T {
  return 'runs' in forecast
}
