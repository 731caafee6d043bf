/** Replays a run in which one swap decision takes another victim, and compares it with the original run. */
import type { TaskRecord } from '../../controller/ports/store.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Metrics } from '../scenario/metrics.ts'
import { runScenario } from '../run/run.ts'
import type { Run, RunIdentity, RunOptions, RunPlan } from '../run/run.ts'
import type { World } from '../world/world.ts'

export interface OtherVictim {
  readonly decision: number
  readonly victim: string
}

/** One swap decision of a run. */
export interface SwapChoice {
  readonly decision: number
  /** Since the start. */
  readonly atMs: DurationMs
  readonly taskId: string
  readonly node: string
  readonly victimIds: readonly string[]
  readonly candidateIds: readonly string[]
}

export interface Counterfactual {
  readonly decision: SwapChoice
  /** The victim instead. */
  readonly otherVictimIds: readonly string[]
  readonly cluster: { readonly before: ClusterFigures; readonly after: ClusterFigures }
  /** The requester, its victims, and the victim instead. */
  readonly tasks: readonly InvolvedTask[]
  /** Tasks with a different end. */
  readonly tasksChanged: number
}

export interface ClusterFigures {
  readonly queue_wait_s: number | null
  readonly starvation_percent: number
  readonly utilization_percent: number | null
  readonly swap_outs: number
  readonly makespan_s: number | null
}

export interface InvolvedTask {
  readonly id: string
  readonly role: 'needs' | 'left' | 'leaves_instead'
  readonly before: TaskFigures | null
  readonly after: TaskFigures | null
}

/** Null: not in this run. */
export interface TaskFigures {
  readonly queue_wait_s: number | null
  readonly starvation_percent: number
  readonly swap_outs: number
  /** Since the start of the run. */
  readonly ended_s: number | null
}

/** Not possible: no such decision, or the task could not be a victim. */
export class CounterfactualFault extends Error {
  override readonly name = 'CounterfactualFault'
}

const MAX_LISTED = 20

/** Returns every swap decision of the run, in order. */
export async function swapChoices(
  plan: RunPlan,
  identity: RunIdentity,
  options: RunOptions = {},
): Promise<readonly SwapChoice[]> {
  return (await observedRun(plan, identity, options, null)).choices
}

/** Throws CounterfactualFault, and the errors of a run. */
export async function counterfactual(
  plan: RunPlan,
  identity: RunIdentity,
  other: OtherVictim,
  options: RunOptions = {},
): Promise<Counterfactual> {
  const before = await observedRun(plan, identity, options, null)
  const decision = before.choices.find((choice) => choice.decision === other.decision)
  if (decision === undefined) throw new CounterfactualFault(noDecision(other.decision, before.choices))
  if (!decision.candidateIds.includes(other.victim)) {
    const listed = decision.candidateIds.slice(0, MAX_LISTED).join(', ')
    throw new CounterfactualFault(
      `task ${other.victim} could not leave in decision ${other.decision}; those that could: ${listed}`,
    )
  }
  const after = await observedRun(plan, identity, options, other)
  const otherVictimIds = after.choices.find((choice) => choice.decision === other.decision)?.victimIds ?? []
  if (!otherVictimIds.includes(other.victim)) {
    throw new CounterfactualFault(`with task ${other.victim} decision ${other.decision} would not be covered`)
  }
  return {
    decision,
    otherVictimIds,
    cluster: { before: clusterFigures(before.run), after: clusterFigures(after.run) },
    tasks: await involved(decision, otherVictimIds, before.run.world, after.run.world),
    tasksChanged: changedOf(before.ends, after.ends),
  }
}

interface Observed {
  readonly run: Run
  readonly choices: readonly SwapChoice[]
  /** By task: when and how it ended. */
  readonly ends: ReadonlyMap<string, string>
}

async function observedRun(
  plan: RunPlan,
  identity: RunIdentity,
  options: RunOptions,
  override: OtherVictim | null,
): Promise<Observed> {
  const choices: SwapChoice[] = []
  const ends = new Map<string, string>()
  let world: World | null = null as World | null
  const run = await runScenario(plan, identity, {
    ...options,
    keepsTasks: true,
    onOutcome: ({ id, finishedAt, state }) => ends.set(id, `${state} ${finishedAt}`),
    watch: (started) => {
      world = started
      return { afterStep: () => {} }
    },
    victimOverride: {
      override,
      onChoice: ({ nodeId, ...seen }) => {
        const node = world?.controller.views.node(nodeId)?.name ?? nodeId
        choices.push({ ...seen, atMs: world?.nowMs ?? 0, node })
      },
    },
  })
  return { run, choices, ends }
}

function noDecision(decision: number, choices: readonly SwapChoice[]): string {
  const [first, last] = [choices[0], choices.at(-1)]
  if (first === undefined || last === undefined) return 'the run has no swap decision'
  return (
    `the run has no swap decision ${decision}; it has ${choices.length}, from ` +
    `${first.decision} to ${last.decision}`
  )
}

function clusterFigures({ result: { metrics }, world }: Run): ClusterFigures {
  const { queue_wait_s, starvation_percent, utilization_percent, makespan_s }: Metrics = metrics
  return {
    queue_wait_s: queue_wait_s?.mean ?? null,
    starvation_percent: starvation_percent.total,
    utilization_percent,
    swap_outs: world.controllers.swapTotals().swapOuts,
    makespan_s,
  }
}

async function involved(
  { taskId, victimIds }: SwapChoice,
  otherVictimIds: readonly string[],
  before: World,
  after: World,
): Promise<InvolvedTask[]> {
  const roles = new Map<string, InvolvedTask['role']>([[taskId, 'needs']])
  for (const id of victimIds) if (!roles.has(id)) roles.set(id, 'left')
  for (const id of otherVictimIds) if (!roles.has(id)) roles.set(id, 'leaves_instead')
  return Promise.all(
    [...roles].map(async ([id, role]) => ({
      id,
      role,
      before: await figuresOf(before, id),
      after: await figuresOf(after, id),
    })),
  )
}

async function figuresOf(world: World, id: string): Promise<TaskFigures | null> {
  const record = await world.controller.views.stored.task(id)
  if (record === null) return null
  const { firstStartedAt, submittedAt, finishedAt, swapOuts } = record
  const [demand, served] = countersOf(world, record)
  return {
    queue_wait_s: firstStartedAt === null ? null : (firstStartedAt - submittedAt) / 1000,
    starvation_percent: demand === 0 ? 0 : (100 * (demand - served)) / demand,
    swap_outs: swapOuts,
    ended_s: finishedAt === null ? null : (finishedAt - world.plan.clock.startMs) / 1000,
  }
}

/** For an open task, as of the end of the run. */
function countersOf(world: World, record: TaskRecord): readonly [demand: number, served: number] {
  const open = world.controller.views.openTask(record.id)
  if (open === undefined) return [record.counters[0], record.counters[1]]
  const { demand, served } = world.controller.views.taskCounters(open)
  return [demand, served]
}

function changedOf(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): number {
  let changed = 0
  for (const id of new Set([...before.keys(), ...after.keys()]))
    if (before.get(id) !== after.get(id)) changed += 1
  return changed
}
