/**
 * Previews a change of a group: nodes that leave or join the common pool, tasks that finish on nodes they no
 * longer match, and pending tasks whose feasibility changes.
 */
import type { Mib } from '../../../protocol/units.ts'
import type { Node, Task } from '../../model/placement.ts'
import { effectiveSchedulableMib, resolveOvercommit } from '../../model/vram.ts'
import { largestEverOn, NOTHING } from '../../policy/placement/feasible.ts'
import { poolKeyOf, searchDemandMib } from '../../policy/placement/shape.ts'
import type { Cluster } from '../../state/cluster.ts'
import { belongsTo } from '../../state/index/membership.ts'
import type { LiveNode } from '../../state/facts.ts'
import { placementsOn } from '../../state/placements-on.ts'
import type { PendingQueue } from '../../state/index/pending-queue.ts'

/** Maximum number of nodes and tasks that are named; the others are counted. */
const MAX_NAMED = 20
/** Maximum number of pending tasks examined for names. */
const MAX_LOOKS = 20_000

export interface NodeSum {
  readonly nodes: number
  readonly nodeIds: readonly string[]
  readonly gpus: number
  readonly physicalMib: Mib
  readonly effectiveSchedulableMib: Mib
}

export interface TaskSum {
  readonly tasks: number
  readonly taskIds: readonly string[]
}

export interface GroupPreview {
  readonly joining: NodeSum
  readonly leaving: NodeSum
  readonly leavesCommonPool: NodeSum
  readonly returnsToCommonPool: NodeSum
  /** Tasks placed there that could not be placed there after the change: they finish where they are. */
  readonly finishing: TaskSum
  /** Pending tasks that only after, or only before, the change fit some empty node. */
  readonly becomeFeasible: TaskSum
  readonly becomeInfeasible: TaskSum
}

/**
 * @param nodeIds the members after the change; ids of unregistered nodes do not count. Null: the group is
 * deleted.
 */
export function previewGroup(
  c: Pick<Cluster, 'groups' | 'nodes' | 'policy' | 'queues'>,
  id: string,
  nodeIds: readonly string[] | null,
): GroupPreview {
  const before = new Set(c.groups.get(id)?.nodeIds ?? [])
  const after = new Set(nodeIds ?? [])
  const changed = new Map<LiveNode, readonly string[]>()
  for (const nodeId of new Set([...before, ...after])) {
    const node = c.nodes.get(nodeId)
    if (node === undefined || before.has(nodeId) === after.has(nodeId)) continue
    const others = node.groups.filter((group) => group !== id)
    changed.set(node, after.has(nodeId) ? [...others, id] : others)
  }
  const nodes = [...changed.keys()]
  const groupsAfter = (node: LiveNode): readonly string[] => changed.get(node) ?? node.groups
  const sumOf = (isCounted: (node: LiveNode) => boolean) => sumOfNodes(c, nodes.filter(isCounted))
  return {
    joining: sumOf((node) => after.has(node.id)),
    leaving: sumOf((node) => !after.has(node.id)),
    leavesCommonPool: sumOf((node) => node.groups.length === 0),
    returnsToCommonPool: sumOf((node) => groupsAfter(node).length === 0),
    finishing: sumOfTasks(finishingOn(nodes, groupsAfter)),
    ...pendingAfter(c, changed),
  }
}

function sumOfNodes(c: Pick<Cluster, 'policy'>, nodes: readonly Node[]): NodeSum {
  let [gpus, physicalMib, schedulableMib] = [0, 0, 0]
  for (const node of nodes) {
    const { percent } = resolveOvercommit(c.policy.overcommitPercent, node.overcommitOverride)
    gpus += node.gpus.length
    for (const gpu of node.gpus) {
      physicalMib += gpu.physicalMib
      schedulableMib += effectiveSchedulableMib(gpu.physicalMib, percent)
    }
  }
  const nodeIds = nodes.slice(0, MAX_NAMED).map((node) => node.id)
  return { nodes: nodes.length, nodeIds, gpus, physicalMib, effectiveSchedulableMib: schedulableMib }
}

function sumOfTasks(tasks: readonly Task[]): TaskSum {
  return { tasks: tasks.length, taskIds: tasks.slice(0, MAX_NAMED).map((task) => task.spec.id) }
}

function finishingOn(nodes: readonly LiveNode[], groupsAfter: (node: LiveNode) => readonly string[]): Task[] {
  return nodes.flatMap((node) =>
    [...placementsOn(node)]
      .map((placement) => placement.task)
      .filter(({ spec }) => !belongsTo(groupsAfter(node), poolKeyOf(spec.groups))),
  )
}

/**
 * Tasks of one shape differ only in their demand: one figure per queue, before and after, decides which could
 * ever be placed.
 */
function pendingAfter(
  c: Pick<Cluster, 'queues'>,
  changed: ReadonlyMap<LiveNode, readonly string[]>,
): Pick<GroupPreview, 'becomeFeasible' | 'becomeInfeasible'> {
  const gained = new Gathered()
  const lost = new Gathered()
  for (const queue of c.queues) {
    if (queue.size === 0) continue
    const beforeMib = queue.pool.largestEverMib(queue.shape)
    const afterMib = largestEverAfter(queue, changed)
    if (afterMib > beforeMib) gained.add(queue, beforeMib, afterMib)
    else if (afterMib < beforeMib) lost.add(queue, afterMib, beforeMib)
  }
  return { becomeFeasible: gained.sum(), becomeInfeasible: lost.sum() }
}

function largestEverAfter(
  { pool, shape }: PendingQueue,
  changed: ReadonlyMap<LiveNode, readonly string[]>,
): Mib {
  let mib: Mib = NOTHING
  for (const node of pool.nodes.keys())
    if (!changed.has(node)) mib = Math.max(mib, largestEverOn(node, shape.gpuCount))
  for (const [node, groups] of changed)
    if (belongsTo(groups, pool.key)) mib = Math.max(mib, largestEverOn(node, shape.gpuCount))
  return mib
}

/** Pending tasks whose demand is between two figures: all are counted, some named. */
class Gathered {
  #tasks = 0
  #looks = 0
  readonly #ids: string[] = []

  add(queue: PendingQueue, aboveMib: Mib, upToMib: Mib): void {
    this.#tasks += queue.countWithin(upToMib) - queue.countWithin(aboveMib)
    for (const task of queue.tasks()) {
      if (this.#ids.length >= MAX_NAMED || ++this.#looks > MAX_LOOKS) return
      const mib = searchDemandMib(task.spec)
      if (mib > aboveMib && mib <= upToMib) this.#ids.push(task.spec.id)
    }
  }

  sum(): TaskSum {
    return { tasks: this.#tasks, taskIds: this.#ids }
  }
}
