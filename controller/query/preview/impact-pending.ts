/** Pending tasks that a change of the configuration would make fit, or make infeasible. */
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import { kthLargest } from '../explain/explain-survey.ts'
import { largestEverMib, NOTHING } from '../../policy/placement/feasible.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import type { Shape } from '../../policy/placement/shape.ts'
import { searchDemandMib } from '../../policy/placement/shape.ts'
import type { Cluster } from '../../state/cluster.ts'
import type { LiveNode, LiveTask } from '../../state/facts.ts'
import { PoolCopy } from './pool-copy.ts'
import type { Pool } from '../../state/index/pool.ts'
import type { NodeCopy, Hypothesis } from './hypothesis.ts'

/** Maximum number of task ids that are named; the others are counted. */
export const MAX_NAMED_TASKS = 20
/**
 * The scan of pending tasks ends after this number of node and task checks; its findings so far are returned.
 */
const MAX_LOOKS = 60_000

export interface PendingImpact {
  /**
   * Tasks that fit somewhere only after the change, each considered alone: tasks ahead of it are not counted.
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

export function pendingImpact(
  c: Cluster,
  policy: Policy,
  hypothesisOn: (node: LiveNode) => Hypothesis,
  now: Instant,
): PendingImpact {
  const pass = new Pass(c, policy, hypothesisOn, now)
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
  readonly before: PoolCopy
  readonly after: PoolCopy
  /** Entries of node queues reserve some of its GPUs: their offers then depend on the task. */
  readonly hasReservations: boolean
}

class Pass {
  readonly #c: Cluster
  readonly #policy: Policy
  readonly #hypothesisOn: (node: LiveNode) => Hypothesis
  readonly #now: Instant
  readonly #pools = new Map<Pool, BeforeAndAfter>()
  readonly #ever = new Map<string, { readonly beforeMib: Mib; readonly afterMib: Mib }>()
  /** Tasks with the same request have the same result. */
  readonly #known = new Map<string, Change>()

  constructor(c: Cluster, policy: Policy, hypothesisOn: (node: LiveNode) => Hypothesis, now: Instant) {
    this.#c = c
    this.#policy = policy
    this.#hypothesisOn = hypothesisOn
    this.#now = now
  }

  get looks(): number {
    let looks = 0
    for (const { before, after } of this.#pools.values()) looks += before.looks + after.looks
    return looks
  }

  changeFor(task: LiveTask): Change {
    const { pool, shape } = this.#c.queueFor(task.spec)
    const { noswap, command } = task.spec
    const key =
      `${searchDemandMib(task.spec)} ${noswap} ${task.queueClass} ` +
      `${command === null ? '-' : 'exec'} ` +
      `${shape.key}`
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
    const { beforeMib, afterMib } = this.#everIn(pool, shape)
    if (demandMib > afterMib) return demandMib > beforeMib ? null : 'never'
    const queued: Queued = { task, queueClass: task.queueClass }
    const { before, after } = this.#poolsOf(pool)
    return after.takes(queued, shape) && !before.takes(queued, shape) ? 'fits' : null
  }

  #poolsOf(pool: Pool): BeforeAndAfter {
    let pools = this.#pools.get(pool)
    if (pools === undefined) {
      const nodes = [...pool.nodes.keys()]
      pools = {
        before: new PoolCopy(nodes, () => ({}), this.#c.policy, this.#now),
        after: new PoolCopy(nodes, this.#hypothesisOn, this.#policy, this.#now),
        hasReservations: nodes.some(({ gpus }) =>
          gpus.some(({ reservations }) => reservations.some(({ by }) => by === 'entry')),
        ),
      }
      this.#pools.set(pool, pools)
    }
    return pools
  }

  #everIn(pool: Pool, shape: Shape): { readonly beforeMib: Mib; readonly afterMib: Mib } {
    const key = `${shape.gpuCount} ${pool.key}`
    let ever = this.#ever.get(key)
    if (ever === undefined) {
      const { before, after } = this.#poolsOf(pool)
      ever = { beforeMib: everMib(before.nodes, shape), afterMib: everMib(after.nodes, shape) }
      this.#ever.set(key, ever)
    }
    return ever
  }
}

/**
 * Returns the largest demand on this number of GPUs that could ever fit some node, including nodes that are
 * down.
 */
function everMib(nodes: readonly NodeCopy[], { gpuCount }: Shape): Mib {
  let mib = NOTHING
  for (const node of nodes) mib = Math.max(mib, kthLargest(node.gpus.map(largestEverMib), gpuCount))
  return mib
}
