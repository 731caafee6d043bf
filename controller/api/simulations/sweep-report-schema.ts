/**
 * The report of a sweep (GET /simulations/{id}/report): `result.json` of `headroom sim sweep --out`.
 * services/sweep conforms to these types.
 */

/** The fields varied besides the percentage, by dotted path. */
export type SettingsBody = Readonly<Record<string, number | string | boolean | null>>

/** Over the seeds of one percentage; quantiles are nearest rank. */
export interface BandBody {
  readonly mean: number
  readonly p10: number
  readonly p90: number
  readonly p95: number
}

export interface DistributionBody {
  readonly mean: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** docs/simulation-model.md defines each figure. */
export interface RunMetricsBody {
  readonly jct_s: DistributionBody | null
  readonly queue_wait_s: DistributionBody | null
  readonly slowdown: DistributionBody | null
  /** Only if swapped-out tasks returned because they wanted the GPU. */
  readonly wake_s?: DistributionBody
  /** Means of the parts of `wake_s`. */
  readonly wake_parts_s?: { readonly wait: number; readonly swap_out: number; readonly swap_in: number }
  readonly makespan_s: number | null
  readonly utilization_percent: number | null
  readonly starvation_percent: {
    readonly total: number
    readonly queue: number
    readonly swap: number
    readonly compute: number
  }
  /** Only if some servers cannot signal that a task wants the GPU. */
  readonly unsignalled_wait_percent?: number
  /** Former name of `unsignalled_wait_percent`; removed in 0.2. */
  readonly unheard_percent?: number
  readonly swaps_per_hour: number
  readonly swapped_gib_per_hour: number
  readonly swap_jain: number | null
  readonly tasks: {
    readonly submitted: number
    readonly completed: number
    readonly failed: number
    readonly unfinished: number
    readonly fit_nowhere?: number
  }
}

export interface SweptRunBody {
  readonly overcommit_percent: number
  readonly settings: SettingsBody
  readonly seed: number
  /** Digest of all decisions: runs with equal digests are identical. */
  readonly digest: string | null
  readonly scenario_sha256: string | null
  readonly trace_sha256: string | null
  readonly version: string
  readonly virtual_s: number
  readonly metrics: RunMetricsBody
}

export interface SweepSummaryBody {
  readonly overcommit_percent: number
  readonly settings: SettingsBody
  readonly seeds: number
  readonly utilization_percent: BandBody | null
  readonly starvation_percent: {
    readonly total: BandBody | null
    readonly queue: BandBody | null
    readonly swap: BandBody | null
    readonly compute: BandBody | null
  }
  /** Only if a run has it. */
  readonly unsignalled_wait_percent?: BandBody
  /** Former name of `unsignalled_wait_percent`; removed in 0.2. */
  readonly unheard_percent?: BandBody
  readonly queue_wait_s: { readonly p50: BandBody | null; readonly p95: BandBody | null }
  /** Only if a run has it. */
  readonly wake_s?: { readonly p50: BandBody | null; readonly p95: BandBody | null }
  readonly swaps_per_hour: BandBody | null
  readonly swapped_gib_per_hour: BandBody | null
  readonly swap_jain: BandBody | null
}

export interface JudgedObjectiveBody {
  /** `starvation.total<=20` */
  readonly objective: string
  /** Nearest rank over the seeds; null: the figure is missing in some run. */
  readonly p95: number | null
  readonly max: number
  readonly keeps: boolean
}

export interface CandidateBody {
  readonly overcommit_percent: number
  readonly seeds: number
  readonly utilization_percent: BandBody | null
  readonly objectives: readonly JudgedObjectiveBody[]
  readonly keeps: boolean
}

export interface AdviceBody {
  readonly settings: SettingsBody
  readonly objectives: readonly string[]
  /** null: no percentage meets the objectives, or tasks fit on no node. */
  readonly recommended_percent: number | null
  readonly utilization_percent: BandBody | null
  /** null: the curve has no knee. */
  readonly knee_percent: number | null
  /**
   * From the lowest percentage tried to the recommended one, the largest gain first; reports of earlier
   * versions lack it.
   */
  readonly changes?: readonly {
    readonly figure: string
    readonly before: number
    readonly after: number
    readonly verdict: string
  }[]
  /** Caveats of the advice; `none_keeps` names the percentage nearest to the objectives. */
  readonly caveats: readonly { readonly kind: string; readonly nearest_percent?: number }[]
  readonly candidates: readonly CandidateBody[]
  /** Human-readable text: one sentence per line, the recommendation first. */
  readonly text: string
}

export interface SweepReportBody {
  readonly runs_done: number
  readonly runs_planned: number
  /** By setting, percentage, seed. */
  readonly runs: readonly SweptRunBody[]
  readonly summary: readonly SweepSummaryBody[]
  /** One for each combination of the settings. */
  readonly advice: readonly AdviceBody[]
}
