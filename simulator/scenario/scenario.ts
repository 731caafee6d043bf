/**
 * A loaded scenario: every default filled in, integers, milliseconds, MiB. What the fields mean to people
 * stands in `schema.ts`.
 */
import type { ConfigFields } from '../../controller/domain/config.ts'
import type { OwnerLimits } from '../../controller/domain/owner-limits.ts'
import type { DurationMs, GpuMode, Instant, Mib, NoSwap, OnNodeLoss, Percent } from '../../protocol/units.ts'
import type { ActivityModelName } from '../fleet/activity.ts'
import type { SwapProfile } from '../fleet/swap-profiles.ts'
import type { Work } from '../trace/trace-format.ts'
import type { Assertions } from './assertions.ts'
import type { FaultItem } from './fault.ts'
import type { SimTaskRequest } from './task-request.ts'

export interface Scenario {
  readonly name: string
  readonly description: string | null
  readonly version: 1
  readonly seed: number
  readonly clock: ScenarioClock
  /** In the order of the file; names are unique. */
  readonly nodes: readonly ScenarioNode[]
  /** The fields the file states; the others have the controller's defaults. */
  readonly config: Readonly<Partial<ConfigFields>>
  /** Left out: none. */
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
  /** Since the start; no arrival after. Null: the run ends with its workload. */
  readonly untilMs: DurationMs | null
  /** Runs on after `untilMs` to the end of every task that can end. */
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
  /** Left out: it follows from the name. */
  readonly id?: string
  /** Nothing new is placed there. */
  readonly isCordoned?: boolean
  /**
   * What all copies of the node together move through its host memory; null or left out: each GPU's own link
   * alone bounds them.
   */
  readonly hostLinkMibPerS?: number | null
  /**
   * False: a task that is swapped out stands still, and nothing tells that it wants the GPU; left out: it
   * tells.
   */
  readonly signalsWanted?: boolean
  /** Attempts that its server holds at once; left out: as many as the protocol allows. */
  readonly maxAttempts?: number
  /** VRAM that others take over time, by rising time; left out: nothing changes. */
  readonly foreign?: readonly ForeignStep[]
}

/** From `atMs` on, others hold so much of each of these GPUs, or as much of it as is free in that instant. */
export interface ForeignStep {
  readonly atMs: DurationMs
  readonly mib: Mib
  /** Null: all of the node. */
  readonly gpus: readonly number[] | null
}

/** Alike on all nodes of an entry, and the same object. */
export interface GpuModel {
  readonly model: string
  readonly vramMib: Mib
  readonly swap: SwapProfile
  /**
   * What k tasks with work get done together, in permille of what one alone does: [k - 1], the last for all
   * above. Never empty.
   */
  readonly efficiencyPermille: readonly number[]
  /** From the order to launch a process until it runs; left out: no time. */
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
  /** Stands before the trace's ids: empty, or `<name>-` when several traces are loaded. */
  readonly idPrefix: string
  readonly timeScale: number
  readonly sample: number
  /** In the trace's own time. */
  readonly fromMs: DurationMs
  readonly toMs: DurationMs | null
  readonly maxGpus: number | null
  /** Makes phases anew of the time that each task is there. Null: as the trace has it. */
  readonly activity: ActivitySpec | null
}

export interface GenerateItem {
  readonly kind: 'generate'
  /** poisson: arrivals without memory. regular: at equal distances. */
  readonly arrivals: 'poisson' | 'regular'
  /** Names its random streams, and its tasks: `<name>-0`, `<name>-1`, … */
  readonly name: string
  readonly ratePerHour: number
  /** Null: the rate is the same all day. */
  readonly daily: DailyRate | null
  /** Tasks of each arrival. */
  readonly batch: number
  readonly fromMs: DurationMs
  /** No arrival then or later. Null: only `count` ends it. */
  readonly untilMs: DurationMs | null
  readonly count: number | null
  readonly gpus: Weights
  /** Null: exclusive tasks that take all a GPU has. */
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
  readonly maxRuntimeSeconds: number | null
  readonly maxRequeues?: number | null
  readonly stopGraceSeconds?: number
  readonly stopTakesMs?: DurationMs
  readonly onNodeLoss: OnNodeLoss
  /** Since its submission, when its owner cancels a task; null: never. */
  readonly cancelAfter: DurationSpec | null
}

/** What the rate is multiplied by in each hour of the day. */
export interface DailyRate {
  /** 24 of them, from midnight UTC; at least one is above 0. */
  readonly factors: readonly number[]
  /** Time of the day at which the run begins. */
  readonly startMs: DurationMs
}

/** A model by name, or busy and idle runs in turn. */
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
  /** As stated, or a residence that an activity model makes phases of. */
  readonly work:
    Work | { readonly kind: 'residence'; readonly ms: DurationMs; readonly activity: ActivitySpec }
  readonly allocSteps: AllocSteps
  readonly cancelAtMs: DurationMs | null
  /** After SIGTERM; left out: it ends at once. */
  readonly stopTakesMs?: DurationMs
  /** Where it stands when the scenario begins; left out: it is submitted at `atMs`. */
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

/** A task that was submitted before the scenario begins. Times are before its start. */
export interface TaskStart {
  /** Its place in the order of submission; null: after those that stand before it in the file. */
  readonly number: number | null
  readonly submittedAgoMs: DurationMs
  /** How long it has been waiting in the pending queue, of a placed task: how long its last wait is past. */
  readonly waitedMs: DurationMs
  readonly isHeld: boolean
  /** How often it was assigned. */
  readonly attempt: number
  readonly swapOuts: number
  /** Of its first attempt; null: it has never run. */
  readonly firstStartedAgoMs: DurationMs | null
  readonly placed: PlacedStart | null
}

export interface PlacedStart {
  readonly node: string
  readonly gpus: readonly number[]
  /** Per GPU, granted growth included. */
  readonly demandMib: Mib
  /** As it is accounted. */
  readonly noswap: NoSwap
  readonly residency: 'resident' | 'swapped_out'
  readonly startedAgoMs: DurationMs
  readonly residentForMs: DurationMs
  /** Since its last use; null: it wants the GPU. */
  readonly idleForMs: DurationMs | null
  /** Since when it wants the GPU, or does not. */
  readonly wantsForMs: DurationMs
  /** Since when it asks to return; null: it does not, or from the start on. */
  readonly askedAgoMs: DurationMs | null
  readonly isCalledBack: boolean
  /** Since when it is swapped out; null: since the start of the scenario. */
  readonly outForMs: DurationMs | null
  /** An operator swapped it out. */
  readonly isSentAway: boolean
  /** An allocation that its server holds. */
  readonly growth: { readonly mib: Mib; readonly askedAgoMs: DurationMs } | null
  readonly backOffMs: DurationMs
  /**
   * By GPU held: whether it was swapped out in the present round of its class, and the number of the
   * decision; null: never.
   */
  readonly marks: ReadonlyArray<{ readonly isThisRound: boolean; readonly decision: number | null } | null>
  /** GPU work of its first step that is done already, below 1 ms. */
  readonly doneUs: number
}

// ── operator, sweep ──────────────────────────────────────────────────────────

export type OperatorMethod = 'get' | 'put' | 'post' | 'patch' | 'delete'

export interface OperatorAction {
  readonly atMs: DurationMs
  readonly method: OperatorMethod
  /** With `{node:NAME}` in it as written; every such node is in the fleet. */
  readonly path: string
  /** JSON; null sends none. */
  readonly body: unknown
  /** The status it must be answered with; `accepted`: any below 400. */
  readonly expect: number | 'accepted' | 'any'
  /** What the answer must contain; left out: anything. */
  readonly answer?: unknown
  /** Of the task that it makes: `{task:NAME}` in later actions stands for its id. */
  readonly as?: string
  /** Beside the content type. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface Sweep {
  /** In the order of the controller's table of fields. Every combination is tried. */
  readonly fields: readonly SweptField[]
  /** Null: the scenario's own. */
  readonly seeds: readonly number[] | null
}

export interface SweptField {
  readonly field: keyof ConfigFields
  readonly values: readonly (number | string | null)[]
}
