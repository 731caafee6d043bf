/** Pending tasks that a change of the configuration would make fit, or make infeasible. */
import type { Instant } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import { requestOf } from '../explain/explain-task.ts'
import { keyOf } from '../explain/surveys.ts'
import { whenPlacedOn } from '../../policy/place-alone.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import type { Shape } from '../../policy/placement/shape.ts'
import { searchDemandMib } from '../../policy/placement/shape.ts'
import type { Cluster } from '../../state/cluster.ts'
import type { LiveNode, LiveTask } from '../../state/facts.ts'
import { Pool } from '../../state/index/pool.ts'
import { forkNode } from '../../state/snapshot/node-fork.ts'

/** Maximum number of task ids that are named; the others are counted. */
export const MAX_NAMED_TASKS = 20
/**
 * The scan of pending tasks ends after this number of node and task checks; its findings so far are returned.
 */
const MAX_LOOKS = 60_000

export interface PendingImpact {
  /**
   * Tasks that fit somewhere only after the change, each considered alone: tasks ahead of it are not counted,
   * nor is the reservation that it may get because it has waited long.
   */
  readonly wouldFit: number
  readonly wouldFitIds: readonly string[]
  /** Tasks that could be placed before the change and could never be placed after it. */
  readonly infeasible: number
  readonly infeasibleIds: readonly string[]
  /** Number of tasks examined, in submission order, and of all that wait. */
  readonly lookedAt: number
  readonly of: number
}

type PendingState = Pick<Cluster, 'policy' | 'queueFor' | 'tasks'>

export function pendingImpact(
  c: PendingState,
  policy: Policy,
  forks: ReadonlyMap<LiveNode, LiveNode>,
  now: Instant,
): PendingImpact {
  const pass = new Pass(c, policy, forks, now)
  const waiting = [...c.tasks.values()].filter(({ queue }) => queue !== null)
  const found = { wouldFit: 0, infeasible: 0, lookedAt: 0 }
  const [wouldFitIds, infeasibleIds]: [string[], string[]] = [[], []]
  for (const task of waiting) {
    if (pass.looks + found.lookedAt >= MAX_LOOKS) break
    found.lookedAt += 1
    const change = pass.changeFor(task)
    if (change === 'fits' && ++found.wouldFit <= MAX_NAMED_TASKS) wouldFitIds.push(task.spec.id)
    if (change === 'never' && ++found.infeasible <= MAX_NAMED_TASKS) infeasibleIds.push(task.spec.id)
  }
  return { ...found, wouldFitIds, infeasibleIds, of: waiting.length }
}

/** The effect of the change on a task. */
type Change = 'fits' | 'never' | null

interface BeforeAndAfter {
  readonly before: Pool
  readonly after: Pool
  /** Entries of node queues reserve some of its GPUs: their offers then depend on the task. */
  readonly hasReservations: boolean
}

class Pass {
  /** Number of nodes examined so far. */
  looks = 0
  readonly #c: PendingState
  readonly #policy: Policy
  readonly #forks: ReadonlyMap<LiveNode, LiveNode>
  readonly #now: Instant
  readonly #pools = new Map<Pool, BeforeAndAfter>()
  /** Tasks with the same request have the same result. */
  readonly #known = new Map<string, Change>()

  constructor(c: PendingState, policy: Policy, forks: ReadonlyMap<LiveNode, LiveNode>, now: Instant) {
    this.#c = c
    this.#policy = policy
    this.#forks = forks
    this.#now = now
  }

  changeFor(task: LiveTask): Change {
    const { pool, shape } = this.#c.queueFor(task.spec)
    const key = `${task.queueClass} ${keyOf(requestOf(this.#c, { task, shape }))}`
    // A refusal excludes a node for one task only, and offers on reserved GPUs depend on the queue order.
    const isLikeOthers =
      task.refusedBy === null && task.trouble.refusals.length === 0 && !this.#poolsOf(pool).hasReservations
    const known = isLikeOthers ? this.#known.get(key) : undefined
    if (known !== undefined) return known
    const change = this.#work(task, pool, shape)
    if (isLikeOthers) this.#known.set(key, change)
    return change
  }

  #work(task: LiveTask, pool: Pool, shape: Shape): Change {
    const demandMib = searchDemandMib(task.spec)
    const { before, after } = this.#poolsOf(pool)
    if (demandMib > after.largestEverMib(shape))
      return demandMib > before.largestEverMib(shape) ? null : 'never'
    const queued: Queued = { task, queueClass: task.queueClass }
    const isTakenAfter = this.#isTakenIn(after, queued, shape, this.#policy)
    return isTakenAfter && !this.#isTakenIn(before, queued, shape, this.#c.policy) ? 'fits' : null
  }

  /** Returns true if some node would take the task if no other task waited. */
  #isTakenIn(pool: Pool, queued: Queued, shape: Shape, policy: Policy): boolean {
    const demandMib = searchDemandMib(queued.task.spec)
    for (const when of ['now', 'after_swap'] as const) {
      const [free, reserved] = [
        pool.nodesFor(shape, when, demandMib),
        pool.reservedNodesFor(shape, when, queued, demandMib),
      ]
      for (const nodes of [free, reserved]) {
        for (const node of nodes) {
          this.looks += 1
          if (whenPlacedOn(node, queued, shape, policy, this.#now) !== null) return true
        }
      }
    }
    return false
  }

  #poolsOf(pool: Pool): BeforeAndAfter {
    let pools = this.#pools.get(pool)
    if (pools === undefined) {
      const nodes = [...pool.nodes.keys()]
      pools = {
        before: poolOf(pool.key, nodes.map(forkNode), this.#c.policy),
        after: poolOf(
          pool.key,
          nodes.flatMap((node) => this.#forks.get(node) ?? []),
          this.#policy,
        ),
        hasReservations: nodes.some(({ gpus }) =>
          gpus.some(({ reservations }) => reservations.some(({ by }) => by === 'entry')),
        ),
      }
      this.looks += 2 * nodes.length
      this.#pools.set(pool, pools)
    }
    return pools
  }
}

function poolOf(key: string, nodes: readonly LiveNode[], policy: Policy): Pool {
  const pool = new Pool(key, policy)
  for (const node of nodes) pool.addNode(node)
  return pool
}
