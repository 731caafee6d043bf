/**
 * `admission_rules`: what semantics section 1 requires of a placement besides bytes and the commit limit: all
 * GPUs of the request, an open node, a free task slot, exclusive GPUs if requested, no stranded task, no
 * swap-out for a noswap task at 0%, and host memory for all tasks that may be swapped. A task that starts
 * after a swap was admitted when its VRAM was reserved: later changes by an operator do not count.
 */
import type { Event } from '../../controller/model/event.ts'
import type { Mib } from '../../protocol/units.ts'
import type { AlwaysRule, RuleContext } from './always-rule.ts'
import { isNoswap, movableMib } from './shadow.ts'
import type { Shadow, ShadowNode, ShadowPlacement, ShadowTask } from './shadow.ts'
import type { SwapDecision } from './swap-decision.ts'
import { swapDecisionOf } from './swap-decision.ts'

interface Placed {
  readonly task: ShadowTask
  readonly placement: ShadowPlacement
  readonly node: ShadowNode
}

export function admissionRules({ shadow, observed, report }: RuleContext): AlwaysRule {
  const closed = new Set<string>()
  const away = new Set<string>()
  const held = new Set<string>()
  let changedAt = observed.now()
  let promisedBefore = 0
  let residualBefore = 0
  return {
    before(event) {
      residualBefore = residualMib(event, shadow)
      const decision = swapDecisionOf(event, shadow)
      if (decision !== null && isForNoswapAtZero(decision, shadow))
        report('tasks are swapped out to place it, but it is noswap and overcommit is off', {
          taskId: decision.requester.id,
          nodeId: decision.node.id,
        })
      const node = isPlacement(event) ? shadow.nodes.get(event.nodeId ?? '') : undefined
      if (node !== undefined) promisedBefore = promisedMib(shadow, node)
    },
    after(event) {
      const isResidualChanged =
        event.kind === 'task_residency' && residualMib(event, shadow) !== residualBefore
      if (isChange(event) || isResidualChanged) changedAt = event.at
      noteNode(event, closed, away)
      if (event.kind === 'task_held') held.add(event.taskId ?? '')
      if (event.kind === 'task_released') held.delete(event.taskId ?? '')
      const placed = isPlacement(event) ? placedBy(event, shadow) : null
      if (placed === null) return
      const { task, node } = placed
      const tell = (detail: string): void => report(detail, { taskId: task.id, nodeId: node.id })
      if (held.has(task.id)) tell('it is placed although it is on hold')
      const [asked, given] = [task.request.gpuCount, new Set(placed.placement.gpus).size]
      if (given !== asked) tell(`it is placed on ${given} GPUs, but requests ${asked}`)
      if (closed.has(node.id)) tell('it is placed on a node that takes no new task')
      if (away.has(node.id)) tell('it is placed on a node that is not up')
      if (event.data['when'] === 'after_swap' && task.submittedAt <= changedAt) return
      for (const gpu of placed.placement.gpus)
        for (const problem of problemsOn(gpu, placed, shadow)) tell(`GPU ${gpu}: ${problem}`)
      const promised = promisedMib(shadow, node)
      if (promised > promisedBefore && promised > node.hostSwapMib)
        tell(`its swappable tasks would need ${promised} MiB of host memory; it has ${node.hostSwapMib} MiB`)
    },
    setBack({ stored }) {
      for (const set of [closed, away, held]) set.clear()
      for (const { id, isCordoned } of stored.nodes) if (isCordoned) closed.add(id)
      for (const { id, status = 'up' } of stored.nodes) if (status !== 'up') away.add(id)
      for (const { id, isHeld } of stored.openTasks) if (isHeld) held.add(id)
      changedAt = observed.now()
    },
  }
}

function isForNoswapAtZero({ kind, requester, node }: SwapDecision, shadow: Shadow): boolean {
  return kind === 'placement' && requester.request.noswap === 1 && shadow.percentOn(node) === 0
}

/** Not checked for an attempt that already runs and that its node reports. */
function isPlacement({ kind, data }: Event): boolean {
  return kind === 'task_placed' && data['when'] !== 'reported'
}

/** Returns the residual VRAM on each GPU after the event. It may differ from the previous swap-out. */
function residualMib({ taskId }: Event, shadow: Shadow): Mib {
  return shadow.tasks.get(taskId ?? '')?.placement?.residualMib ?? 0
}

/** What an operator or a granted growth may change while a task waits for victims. */
function isChange({ kind }: Event): boolean {
  return (
    kind === 'task_became_noswap' ||
    kind === 'config_changed' ||
    kind === 'node_config_changed' ||
    kind === 'task_updated' ||
    kind === 'growth_granted'
  )
}

function noteNode({ kind, nodeId, data }: Event, closed: Set<string>, away: Set<string>): void {
  if (nodeId === null) return
  const set = (members: Set<string>, isIn: boolean): void =>
    void (isIn ? members.add(nodeId) : members.delete(nodeId))
  if (kind === 'node_config_changed' && typeof data['is_cordoned'] === 'boolean')
    set(closed, data['is_cordoned'])
  if (kind === 'node_status') set(away, data['status'] !== 'up')
  if (kind === 'node_registered' || kind === 'node_forgotten') {
    closed.delete(nodeId)
    away.delete(nodeId)
  }
}

function placedBy({ taskId }: Event, shadow: Shadow): Placed | null {
  const task = shadow.tasks.get(taskId ?? '')
  const placement = task?.placement ?? null
  const node = shadow.nodes.get(placement?.nodeId ?? '')
  return task === undefined || placement === null || node === undefined ? null : { task, placement, node }
}

function problemsOn(gpu: number, { task, placement, node }: Placed, shadow: Shadow): string[] {
  const tasks = [...(node.tasks[gpu] ?? [])]
  const problems: string[] = []
  const mostTasks = shadow.config.max_tasks_per_gpu
  if (tasks.length > mostTasks) problems.push(`it has ${tasks.length} tasks, the maximum is ${mostTasks}`)
  const owner = tasks.find(({ request }) => request.gpuMode === 'exclusive')
  if (owner !== undefined && tasks.length > 1)
    problems.push(`it is exclusive to ${owner.id}, but ${tasks.length} tasks are placed there`)
  const besideMib = shadow.capacityMib(node) - noswapMib(tasks)
  if (task.request.noswap === 0 && task.request.gpuMode === 'shared' && movableMib(task) > besideMib)
    problems.push(`it requests ${placement.demandMib} MiB, but noswap tasks leave ${besideMib} MiB`)
  if (task.request.noswap === 0) return problems
  const stranded = tasks.filter((other) => !isNoswap(other) && movableMib(other) > besideMib)
  if (stranded.length > 0)
    problems.push(`it strands ${stranded.map(({ id }) => id).join(', ')}: ${besideMib} MiB are left`)
  return problems
}

/** Host memory: a GPU with more committed than fits promises room for all its swappable tasks at once. */
function promisedMib(shadow: Shadow, node: ShadowNode): Mib {
  let mib = 0
  for (const [gpu, tasks] of node.tasks.entries()) {
    if (shadow.placedMib(node, gpu) > shadow.capacityMib(node))
      mib += sum([...tasks].filter((task) => !isNoswap(task)))
  }
  return mib
}

function sum(tasks: readonly ShadowTask[]): Mib {
  return tasks.reduce((mib, task) => mib + movableMib(task), 0)
}

/** N: of noswap tasks everything, of others what they have left. */
function noswapMib(tasks: readonly ShadowTask[]): Mib {
  return tasks.reduce(
    (mib, task) => mib + (task.placement?.residualMib ?? 0) + (isNoswap(task) ? movableMib(task) : 0),
    0,
  )
}
