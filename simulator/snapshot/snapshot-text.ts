/**
 * Writes a snapshot as a scenario file: JSON, which is also YAML. It is yielded in parts, so that a large
 * snapshot is never one text in memory. Defaults are omitted; loading yields the same scenario.
 */
import type { DurationMs } from '../../protocol/units.ts'
import { formatDuration } from '../document/quantity.ts'
import type {
  GpuModel,
  PlacedStart,
  ScenarioNode,
  SimTask,
  TaskItem,
  TaskStart,
  SimTaskRequest,
} from '../scenario/scenario.ts'
import { TASK_DEFAULTS } from '../../protocol/limits.ts'
import { briefRunPolicyBodyOf } from '../../protocol/task-body.ts'
import type { MethodProfile, SwapProfile } from '../scenario/swap-profiles.ts'
import type { Work } from '../trace/trace-format.ts'
import type { Snapshot } from './snapshot.ts'

export interface SnapshotTextOptions {
  readonly name: string
  readonly description: string
  readonly seed?: number
  /** Since the start; null: it runs until its workload is done. */
  readonly untilMs?: DurationMs | null
  /**
   * The run ends then, whatever is in progress; otherwise it continues until every task that can end has
   * ended.
   */
  readonly isCutOff?: boolean
  /** Later submissions, by time since the start. */
  readonly later?: readonly SimTask[]
  /** Entries of these lists in the notation of a scenario. */
  readonly operator?: readonly object[]
  readonly faults?: readonly object[]
}

/** One line for each node and task. Ends with a line break. */
export function* snapshotText(
  snapshot: Snapshot<Iterable<TaskItem>>,
  options: SnapshotTextOptions,
): Generator<string, void> {
  const { name, description, seed = 1, untilMs = null, later = [], isCutOff = false } = options
  const until = untilMs === null ? {} : { until: time(untilMs), ...(isCutOff ? { drain: false } : {}) }
  const clock = { start: new Date(snapshot.startMs).toISOString(), ...until }
  const head = { scenario: name, description, version: 1, seed, clock, config: snapshot.config }
  yield `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "fleet": [`
  let separator = '\n    '
  for (const node of snapshot.nodes) {
    yield `${separator}${JSON.stringify(nodeEntry(node))}`
    separator = ',\n    '
  }
  yield '\n  ],\n  "workload": ['
  separator = '\n    '
  for (const item of snapshot.tasks) {
    yield `${separator}${JSON.stringify({ task: taskEntry(item) })}`
    separator = ',\n    '
  }
  for (const task of later) {
    yield `${separator}${JSON.stringify({ task: laterEntry(task) })}`
    separator = ',\n    '
  }
  yield '\n  ]'
  for (const list of ['operator', 'faults'] as const) {
    const entries = options[list] ?? []
    if (entries.length > 0)
      yield `,\n  "${list}": [\n    ${entries.map((entry) => JSON.stringify(entry)).join(',\n    ')}\n  ]`
  }
  yield '\n}\n'
}

// ── fleet ────────────────────────────────────────────────────────────────────

function nodeEntry(node: ScenarioNode): object {
  const { swap, swapMethods = {}, driverSwaps, efficiencyPermille, startMs = 0 } = node.gpu
  const { hostLinkMibPerS = null } = node
  return {
    name: node.name,
    ...(node.id === undefined ? {} : { id: node.id }),
    gpus: node.gpuCount,
    gpu: {
      model: node.gpu.model,
      vram_mib: node.gpu.vramMib,
      swap: swapEntry(swap),
      ...methodEntries(swapMethods),
      ...(driverSwaps === false ? { driver_swaps: false } : {}),
      ...(efficiencyPermille.length === 1 && efficiencyPermille[0] === 1000
        ? {}
        : { efficiency: efficiencyPermille }),
      ...(startMs === 0 ? {} : { start_ms: startMs }),
    },
    ...(node.groups.length === 0 ? {} : { groups: node.groups }),
    ...(node.safetyReserveMib === null ? {} : { safety_reserve_mib: node.safetyReserveMib }),
    ...(node.overcommitPercent === null ? {} : { overcommit_vram_percent: node.overcommitPercent }),
    host_swap_mib: node.hostSwapMib,
    ...(hostLinkMibPerS === null ? {} : { host_link_mib_per_s: hostLinkMibPerS }),
    ...(node.maxAttempts === undefined ? {} : { max_attempts: node.maxAttempts }),
    ...(node.prepareMs === undefined ? {} : { prepare_seconds: node.prepareMs / 1000 }),
    ...(node.signalsWanted === false ? { signals_wanted: false } : {}),
    ...(node.isCordoned === true ? { cordoned: true } : {}),
    ...(node.foreign === undefined
      ? {}
      : { foreign: node.foreign.map(({ atMs, mib, gpus }) => ({ at: time(atMs), mib, gpus })) }),
  }
}

function methodEntries({ hooks, engine }: NonNullable<GpuModel['swapMethods']>): object {
  const entry = ({ swap, residualMib }: MethodProfile): object => ({
    swap: swapEntry(swap),
    residual_mib: residualMib,
  })
  return {
    ...(hooks === undefined ? {} : { swap_hooks: entry(hooks) }),
    ...(engine === undefined ? {} : { swap_engine: entry(engine) }),
  }
}

function swapEntry(swap: SwapProfile): object {
  return {
    out_mib_per_s: swap.outMibPerS,
    in_mib_per_s: swap.inMibPerS,
    out_fixed_ms: swap.outFixedMs,
    in_fixed_ms: swap.inFixedMs,
  }
}

// ── tasks ────────────────────────────────────────────────────────────────────

function taskEntry({ request, work, allocSteps, cancelAtMs, state, stopTakesMs }: TaskItem): object {
  return {
    ...requestEntry(request),
    ...(work.kind === 'residence'
      ? { run: time(work.ms), activity: work.activity }
      : { work: workEntry(work) }),
    ...(allocSteps.length === 0 ? {} : { alloc: allocSteps }),
    ...(stopTakesMs === undefined ? {} : { stop_takes: time(stopTakesMs) }),
    ...(cancelAtMs === null ? {} : { cancel_at: time(cancelAtMs) }),
    ...(state === undefined ? {} : { state: stateEntry(state, request) }),
  }
}

function laterEntry({ at, cancelAt, ...task }: SimTask): object {
  return { at: time(at), ...taskEntry({ kind: 'task', atMs: at, ...task, cancelAtMs: cancelAt }) }
}

function requestEntry(request: SimTaskRequest): object {
  const { id, name, gpuCount, vramMib, gpuMode, noswap, priority, groups, labels, owner } = request
  return {
    id,
    ...(name === null ? {} : { name }),
    ...(gpuCount === TASK_DEFAULTS.gpuCount ? {} : { gpus: gpuCount }),
    ...(vramMib === null ? {} : { vram_mib: vramMib }),
    ...(gpuMode === TASK_DEFAULTS.gpuMode ? {} : { gpu_mode: gpuMode }),
    ...(noswap === TASK_DEFAULTS.noswap ? {} : { noswap }),
    ...(priority === TASK_DEFAULTS.priority ? {} : { priority }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(owner === null ? {} : { owner }),
    ...briefRunPolicyBodyOf(request),
  }
}

function workEntry(work: Work): object {
  return work
}

function stateEntry(state: TaskStart, request: SimTaskRequest): object {
  const { number, submittedAgoMs, waitedMs, isHeld, attempt, swapOuts, firstStartedAgoMs, placed } = state
  const usualFirstStart = placed?.startedAgoMs ?? null
  return {
    ...(number === null ? {} : { number }),
    submitted_ago: time(submittedAgoMs),
    ...(waitedMs === submittedAgoMs ? {} : { waited: time(waitedMs) }),
    ...(isHeld ? { held: true } : {}),
    ...(attempt === (placed === null ? 0 : 1) ? {} : { attempt }),
    ...(swapOuts === 0 ? {} : { swap_outs: swapOuts }),
    ...(firstStartedAgoMs === usualFirstStart || firstStartedAgoMs === null
      ? {}
      : { first_started_ago: time(firstStartedAgoMs) }),
    ...(placed === null ? {} : { placed: placedEntry(placed, request) }),
  }
}

function placedEntry(p: PlacedStart, { vramMib, noswap }: SimTaskRequest): object {
  return {
    node: p.node,
    gpus: p.gpus,
    ...(p.demandMib === vramMib ? {} : { vram_mib: p.demandMib }),
    ...(p.noswap === noswap ? {} : { noswap: p.noswap }),
    ...(p.residency === 'resident' ? {} : { residency: p.residency }),
    ...(p.residualMib === 0 ? {} : { residual_mib: p.residualMib }),
    started_ago: time(p.startedAgoMs),
    ...(p.residentForMs === p.startedAgoMs ? {} : { resident_for: time(p.residentForMs) }),
    ...(p.idleForMs === null ? {} : { idle_for: time(p.idleForMs) }),
    ...(p.wantsForMs === (p.idleForMs ?? p.residentForMs) ? {} : { wants_for: time(p.wantsForMs) }),
    ...(p.askedAgoMs === null ? {} : { asked_ago: time(p.askedAgoMs) }),
    ...(p.isCalledBack ? { called_back: true } : {}),
    ...(p.outForMs === null ? {} : { out_for: time(p.outForMs) }),
    ...(p.isSentAway ? { sent_away: true } : {}),
    ...(p.growth === null
      ? {}
      : { growth: { vram_mib: p.growth.mib, asked_ago: time(p.growth.askedAgoMs) } }),
    ...(p.backOffMs === 0 ? {} : { back_off: time(p.backOffMs) }),
    ...(p.marks.every((mark) => mark === null) ? {} : { marks: p.marks.map(markEntry) }),
    ...(p.doneUs === 0 ? {} : { done_us: p.doneUs }),
  }
}

function markEntry(mark: PlacedStart['marks'][number]): object | null {
  return mark === null
    ? null
    : { this_round: mark.isThisRound, ...(mark.decision === null ? {} : { decision: mark.decision }) }
}

function time(ms: DurationMs): string {
  return ms === 0 ? '0ms' : formatDuration(ms)
}
