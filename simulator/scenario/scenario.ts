/**
 * A loaded scenario: all defaults filled in; integers, milliseconds, MiB. `schema.ts` describes the fields.
 */
import type { ConfigFields } from '../../controller/model/config.ts'
import type { OwnerLimits } from '../../controller/model/owner-limits.ts'
import type { DurationMs, GpuMode, Instant, Mib, NoSwap, Percent } from '../../protocol/units.ts'
import type { ActivityModelName } from '../trace/activity.ts'
import type { MethodProfile, SwapProfile } from './swap-profiles.ts'
import type { Work } from '../trace/trace-format.ts'
import type { Assertions } from './assertions.ts'
import type { FaultItem } from './fault.ts'
import type { RequestedRunPolicy, TaskRequest } from '../../protocol/task.ts'

export interface Scenario {
  readonly name: string
  readonly description: string | null
  readonly version: 1
  readonly seed: number
  readonly clock: ScenarioClock
  /** In the order of the file; names are unique. */
  readonly nodes: readonly ScenarioNode[]
  /** Only the fields in the file; the others have the controller's defaults. */
  readonly config: Readonly<Partial<ConfigFields>>
  /** Absent: no limits. */
  readonly ownerLimits?: OwnerLimits
  readonly workload: readonly WorkloadItem[]
  /** By time; at one instant in the order of the file. */
  readonly operator: readonly OperatorAction[]
  /** In the order of the file. */
  readonly faults: readonly FaultItem[]
  readonly assertions: Assertions
  readonly sweep: Sweep | null
}

export interface ScenarioClock {
  readonly startMs: Instant
  /** Since the start; no arrivals afterwards. Null: the run ends when its workload is complete. */
  readonly untilMs: DurationMs | null
  /** Continues after `untilMs` until every task that can end has ended. */
  readonly drain: boolean
}

export interface ScenarioNode {
  /** Also its id. */
  readonly name: string
  readonly gpuCount: number
  readonly gpu: GpuModel
  readonly groups: readonly string[]
  readonly safetyReserveMib: Mib | null
  readonly overcommitPercent: Percent | null
  readonly hostSwapMib: Mib
  /** Absent: derived from the name. */
  readonly id?: string
  /** No new placements on the node. */
  readonly isCordoned?: boolean
  /**
   * Limit of the copies of all GPUs through host memory; null or absent: only each GPU's own link limits
   * them.
   */
  readonly hostLinkMibPerS?: number | null
  /** False: a swapped-out task is paused and cannot signal that it wants the GPU. Absent: true. */
  readonly signalsWanted?: boolean
  /** Maximum number of attempts on the server; absent: the limit of the protocol. */
  readonly maxAttempts?: number
  /** Time that it takes to get an image; omitted: it has every image. */
  readonly prepareMs?: DurationMs
  /** VRAM used by other processes over time, by increasing time; absent: none. */
  readonly foreign?: readonly ForeignStep[]
}

/** From `atMs` on, other processes use this amount of each GPU, or less if less is free at that instant. */
export interface ForeignStep {
  readonly atMs: DurationMs
  readonly mib: Mib
  /** Null: all GPUs of the node. */
  readonly gpus: readonly number[] | null
}

/** Shared by all nodes of an entry (the same object). */
export interface GpuModel {
  readonly model: string
  readonly vramMib: Mib
  /** Speed of the driver; also of the other methods if they have no own speed. */
  readonly swap: SwapProfile
  /** Absent: as fast as the driver, and nothing stays. */
  readonly swapMethods?: { readonly hooks?: MethodProfile; readonly engine?: MethodProfile }
  /** False: the driver can move no task. */
  readonly driverSwaps?: false
  /**
   * Throughput of k working tasks in permille of one task alone: [k - 1]; the last value applies to all
   * larger k. Never empty.
   */
  readonly efficiencyPermille: readonly number[]
  /** From the launch order until the process runs; absent: 0. */
  readonly startMs?: DurationMs
}

// ── workload ─────────────────────────────────────────────────────────────────

export type WorkloadItem = TraceItem | GenerateItem | TaskItem

export interface TraceItem {
  readonly kind: 'trace'
  /** Names its random streams: `workload/<name>/…`. */
  readonly name: string
  /** Absolute. */
  readonly file: string
  /** Prefix of the trace's ids: empty, or `<name>-` if several traces are loaded. */
  readonly idPrefix: string
  readonly timeScale: number
  readonly sample: number
  /** In the time of the trace. */
  readonly fromMs: DurationMs
  readonly toMs: DurationMs | null
  readonly maxGpus: number | null
  /** Generates new phases for the time that each task is present. Null: as in the trace. */
  readonly activity: ActivitySpec | null
}

export interface GenerateItem {
  readonly kind: 'generate'
  /** poisson: exponential gaps. regular: equal gaps. */
  readonly arrivals: 'poisson' | 'regular'
  /** Names its random streams, and its tasks: `<name>-0`, `<name>-1`, … */
  readonly name: string
  readonly ratePerHour: number
  /** Null: constant rate. */
  readonly daily: DailyRate | null
  /** Tasks of each arrival. */
  readonly batch: number
  readonly fromMs: DurationMs
  /** No arrivals at or after this time. Null: only `count` ends the item. */
  readonly untilMs: DurationMs | null
  readonly count: number | null
  readonly gpus: Weights
  /** Null: exclusive tasks that use whole GPUs. */
  readonly vram: VramSpec | null
  readonly duration: DurationSpec
  readonly activity: ActivitySpec
  readonly priority: Weights
  /** Probability of noswap, in thousandths. */
  readonly noswapPermille: number
  readonly groups: readonly string[]
  readonly gpuMode: GpuMode
  readonly owner: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly runPolicy: RequestedRunPolicy
  readonly stopTakesMs?: DurationMs
  /** Time from submission to cancellation by the owner; null: never. */
  readonly cancelAfter: DurationSpec | null
}

/** Factor of the rate for each hour of the day. */
export interface DailyRate {
  /** 24 of them, from midnight UTC; at least one is above 0. */
  readonly factors: readonly number[]
  /** Time of day at the start of the run. */
  readonly startMs: DurationMs
}

/** A named model, or alternating busy and idle runs. */
export type ActivitySpec = ActivityModelName | OnOffActivity

export interface OnOffActivity {
  readonly busy: DurationSpec
  readonly idle: DurationSpec
  readonly startsIdle: boolean
}

/** Values with their weights (above 0), by rising value. */
export type Weights = ReadonlyArray<readonly [value: number, weight: number]>

export type VramSpec =
  | { readonly kind: 'constant'; readonly mib: Mib }
  | { readonly kind: 'uniform'; readonly minMib: Mib; readonly maxMib: Mib }
  | {
      readonly kind: 'lognormal'
      readonly medianMib: Mib
      readonly sigma: number
      readonly minMib: Mib
      readonly maxMib: Mib
    }
  | { readonly kind: 'choice'; readonly weights: Weights }

export type DurationSpec =
  | { readonly kind: 'constant'; readonly ms: DurationMs }
  | { readonly kind: 'uniform'; readonly minMs: DurationMs; readonly maxMs: DurationMs }
  | { readonly kind: 'exponential'; readonly meanMs: DurationMs }
  | { readonly kind: 'lognormal'; readonly medianMs: DurationMs; readonly sigma: number }
  | { readonly kind: 'choice'; readonly weights: Weights }

export interface TaskItem {
  readonly kind: 'task'
  readonly atMs: DurationMs
  readonly request: SimTaskRequest
  /** As stated, or a residence for which an activity model generates phases. */
  readonly work:
    Work | { readonly kind: 'residence'; readonly ms: DurationMs; readonly activity: ActivitySpec }
  readonly allocSteps: AllocSteps
  readonly cancelAtMs: DurationMs | null
  /** Time from SIGTERM to the end; absent: 0. */
  readonly stopTakesMs?: DurationMs
  /** State at the start of the scenario; absent: submitted at `atMs`. */
  readonly state?: TaskStart
}

/**
 * Growth: from `t` since its first start (rising) the task uses `mib` on each GPU (rising, above its demand).
 */
export type AllocSteps = ReadonlyArray<readonly [t: DurationMs, mib: Mib]>

/** One submission of a run. */
export interface SimTask {
  /** Since the start of the run. */
  readonly at: DurationMs
  readonly request: SimTaskRequest
  readonly work: Work
  readonly allocSteps: AllocSteps
  /** Since the start of the run; null never. */
  readonly cancelAt: DurationMs | null
  readonly stopTakesMs?: DurationMs
}

// ── tasks that are there at the start ────────────────────────────────────────

/** A task that was submitted before the scenario begins. Times count back from the start. */
export interface TaskStart {
  /** Position in the order of submission; null: after the earlier tasks of the file. */
  readonly number: number | null
  readonly submittedAgoMs: DurationMs
  /** Time in the pending queue; for a placed task, time since its last wait. */
  readonly waitedMs: DurationMs
  readonly isHeld: boolean
  /** Number of assignments. */
  readonly attempt: number
  readonly swapOuts: number
  /** Since its first start; null: never started. */
  readonly firstStartedAgoMs: DurationMs | null
  readonly placed: PlacedStart | null
}

export interface PlacedStart {
  readonly node: string
  readonly gpus: readonly number[]
  /** Per GPU, granted growth included. */
  readonly demandMib: Mib
  /** Effective value used by the accounting. */
  readonly noswap: NoSwap
  readonly residency: 'resident' | 'swapped_out'
  /** What its last swap-out left in VRAM on each GPU. */
  readonly residualMib: Mib
  readonly startedAgoMs: DurationMs
  readonly residentForMs: DurationMs
  /** Since its last use; null: it wants the GPU. */
  readonly idleForMs: DurationMs | null
  /** Time since it began to want the GPU, or stopped. */
  readonly wantsForMs: DurationMs
  /** Time since its swap-in was requested; null: not requested, or requested from the start. */
  readonly askedAgoMs: DurationMs | null
  readonly isCalledBack: boolean
  /** Time since its swap-out; null: since the start of the scenario. */
  readonly outForMs: DurationMs | null
  /** An operator swapped it out. */
  readonly isSentAway: boolean
  /** A pending allocation on its server. */
  readonly growth: { readonly mib: Mib; readonly askedAgoMs: DurationMs } | null
  readonly backOffMs: DurationMs
  /**
   * Per GPU: whether the task was swapped out in the current round of its class, and the number of the
   * decision; null: never.
   */
  readonly marks: ReadonlyArray<{ readonly isThisRound: boolean; readonly decision: number | null } | null>
  /** GPU work of its first step that is already done, below 1 ms. */
  readonly doneUs: number
}

// ── operator, sweep ──────────────────────────────────────────────────────────

export type OperatorMethod = 'get' | 'put' | 'post' | 'patch' | 'delete'

export interface OperatorAction {
  readonly atMs: DurationMs
  readonly method: OperatorMethod
  /** `{node:NAME}` is unresolved; every such node is in the fleet. */
  readonly path: string
  /** JSON; null sends none. */
  readonly body: unknown
  /** Expected status; `accepted`: any below 400. */
  readonly expect: number | 'accepted' | 'any'
  /** Expected part of the answer; absent: any answer. */
  readonly answer?: unknown
  /** Name of the created task: `{task:NAME}` in later actions is replaced by its id. */
  readonly as?: string
  /** In addition to the content type. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface Sweep {
  /** In the order of the controller's field table. Every combination runs. */
  readonly fields: readonly SweptField[]
  /** Null: the scenario's own. */
  readonly seeds: readonly number[] | null
}

export interface SweptField {
  readonly field: keyof ConfigFields
  readonly values: readonly (number | string | null)[]
}

/** A submission of the simulator; its id is unique in the run. */
export type SimTaskRequest = TaskRequest & { readonly id: string }
