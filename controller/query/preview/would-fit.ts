/**
 * The smallest single changes that would place a pending task, found by trying them on copies of nodes
 * (`node-fork.ts`). Each considers the task alone: tasks ahead of it in the queue and entries of the node's
 * queue may take the room first.
 */
import type { Instant, Mib, Percent } from '../../../protocol/units.ts'
import { CONFIG_RULES } from '../../model/config.ts'
import { byCodeUnits } from '../../structures/order.ts'
import type { TaskSpec } from '../../../protocol/task.ts'
import { movableMib, type Task } from '../../model/placement.ts'
import { settingsOn, type NodeSettings } from '../../model/vram.ts'
import { yieldsToP0 } from '../../policy/node-queue.ts'
import { whenPlacedOn } from '../../policy/place-alone.ts'
import {
  commitRoomMib,
  isPlaceable,
  kthLargest,
  largestEverOn,
  reservationRoomMib,
} from '../../policy/placement/feasible.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import { COMMON_POOL, kindOf, searchDemandMib, shapeOf } from '../../policy/placement/shape.ts'
import { mayTake, eligibleFrom } from '../../policy/swap/eligible.ts'
import type { Cluster } from '../../state/cluster.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, LiveTask } from '../../state/facts.ts'
import {
  applyEligibility,
  applySettings,
  endTaskOn,
  forkNode,
  releaseEntryOn,
} from '../../state/snapshot/node-fork.ts'

/**
 * Settings and demands are tried on nodes with at most this number of GPUs in total, those with most commit
 * room; ends of tasks and idleness on fewer.
 */
const MAX_GPUS_TRIED = 4_000
const MAX_NODES_TRIED_CLOSELY = 50
const MAX_TASKS_TRIED = 2_000
const MAX_GROUPS_TRIED = 100
/** Maximum number of nodes to uncordon, and of groups, that are named. */
const MAX_ALTERNATIVES = 3

export type WouldFit = {
  /** The node where the task would then fit. */
  readonly node: LiveNode
  /** Other entries that wait for VRAM there and are served first. */
  readonly entriesBefore: number
} & (
  | {
      readonly change: 'overcommit' | 'reserve'
      readonly scope: 'cluster' | 'node'
      readonly from: number
      readonly to: number
    }
  | { readonly change: 'vram'; readonly from: Mib; readonly to: Mib }
  | { readonly change: 'noswap' | 'uncordon' }
  | { readonly change: 'groups'; readonly group: string | null }
  | { readonly change: 'task_ends'; readonly task: LiveTask; readonly mib: Mib }
  | { readonly change: 'victims_idle'; readonly at: Instant }
)

export interface WouldFitIf {
  /** The task fits now if nothing takes the room first: no change is needed. */
  readonly fitsAlone: boolean
  readonly changes: readonly WouldFit[]
  readonly nodesTried: number
  readonly nodes: number
}

/** The part of the cluster that is read. */
type FittingState = Pick<Cluster, 'groups' | 'nodes' | 'policy' | 'queueFor'>

export function wouldFitIf(c: FittingState, task: LiveTask, now: Instant): WouldFitIf {
  const check = new FitCheck(c, task, now)
  const { pool } = c.queueFor(task.spec)
  const nodes = [...pool.nodes.keys()]
  const tried = nearest(nodes, task.spec)
  const isMissing = tried.every((node) => !check.fits(node))
  if (!isMissing) return { fitsAlone: true, changes: [], nodesTried: tried.length, nodes: nodes.length }
  const open = tried.filter((node) => isPlaceable(node))
  const close = open.slice(0, MAX_NODES_TRIED_CLOSELY)
  const changes = [
    ...overcommits(check, open),
    ...reserves(check, open),
    smallerDemand(check, open),
    swappable(check, open),
    ...otherGroups(check),
    endOfOne(check, close),
    whenIdle(check, close),
    ...uncordons(check, tried),
  ]
  return {
    fitsAlone: false,
    changes: changes.filter((change) => change !== null),
    nodesTried: tried.length,
    nodes: nodes.length,
  }
}

/** Checks whether the task would fit after different changes. */
class FitCheck {
  readonly c: FittingState
  readonly task: LiveTask
  readonly now: Instant
  /** One copy per node: a change of the settings replaces the one before. */
  readonly #underSettings = new Map<LiveNode, LiveNode>()

  constructor(c: FittingState, task: LiveTask, now: Instant) {
    this.c = c
    this.task = task
    this.now = now
  }

  /** Returns true if the node would take the task, with the fields in `asks` replaced. */
  fits(node: LiveNode, asks: Partial<TaskSpec> = {}): boolean {
    return this.#isTakenAfter(node, () => {}, asks)
  }

  /** As above, once the change has been applied to a copy of the node. */
  fitsAfter(node: LiveNode, change: (fork: LiveNode) => void): boolean {
    return this.#isTakenAfter(node, change, {})
  }

  fitsUnder(node: LiveNode, settings: NodeSettings): boolean {
    const fork = this.#underSettings.get(node) ?? forkNode(node)
    this.#underSettings.set(node, fork)
    applySettings(fork, settings)
    return this.#isTakenBy(fork, {})
  }

  #isTakenAfter(node: LiveNode, change: (fork: LiveNode) => void, asks: Partial<TaskSpec>): boolean {
    // Avoids most copies: too few GPUs of the node are large enough.
    const spec = { ...this.task.spec, ...asks }
    if (largestEverOn(node, spec.gpuCount) < searchDemandMib(spec)) return false
    const fork = forkNode(node)
    change(fork)
    return this.#isTakenBy(fork, asks)
  }

  #isTakenBy(fork: LiveNode, asks: Partial<TaskSpec>): boolean {
    const spec = { ...this.task.spec, ...asks }
    const task: Task = Object.keys(asks).length === 0 ? this.task : { ...this.task, spec }
    const queued: Queued = { task, queueClass: this.task.queueClass }
    const shape = shapeOf(spec)
    const isTaken = (node: LiveNode) => whenPlacedOn(node, queued, shape, this.c.policy, this.now) !== null
    if (isTaken(fork)) return true
    const { collector } = fork
    if (collector === null || !shape.isP0 || !yieldsToP0(collector)) return false
    const withoutCollector = forkNode(fork)
    releaseEntryOn(withoutCollector, collector)
    return isTaken(withoutCollector)
  }

  /** @param gone a task that has ended; null: all are there */
  placeOn(node: LiveNode, gone: LiveTask | null = null): Pick<WouldFit, 'node' | 'entriesBefore'> {
    const isBefore = ({ task, hasReserved }: LiveEntry) => task !== this.task && task !== gone && !hasReserved
    return { node, entriesBefore: node.queue.filter(isBefore).length }
  }
}

// ── settings ──────────────────────────────────────────────────────────────────

function overcommits(check: FitCheck, nodes: readonly LiveNode[]): readonly WouldFit[] {
  const { policy } = check.c
  const { max } = CONFIG_RULES.default_vram_overcommit_percent as { readonly max: Percent }
  const fitsAt = (node: LiveNode, overcommitPercent: Percent) =>
    check.fitsUnder(node, { ...settingsOn(node, policy), overcommitPercent })
  const percentOf = (node: LiveNode) => settingsOn(node, policy).overcommitPercent
  // Most nodes fail at any percentage: checking the maximum first excludes them.
  const promising = nodes.filter((node) => percentOf(node) < max && fitsAt(node, max))
  return bothScopes(check, promising, 'overcommit', {
    isOverridden: (node) => node.overcommitOverride !== null,
    fromOn: percentOf,
    // Upwards from the current value.
    leastOn: (node, below) =>
      leastThat((percent) => fitsAt(node, percent), percentOf(node) + 1, Math.min(max, below)),
    isSmaller: (a, b) => a < b,
    bound: max + 1,
  })
}

function reserves(check: FitCheck, nodes: readonly LiveNode[]): readonly WouldFit[] {
  const { policy } = check.c
  const reserveOf = (node: LiveNode) => settingsOn(node, policy).reserveMib
  const fitsAt = (node: LiveNode, reserveMib: Mib) =>
    check.fitsUnder(node, { ...settingsOn(node, policy), reserveMib })
  const promising = nodes.filter((node) => reserveOf(node) > 0 && fitsAt(node, 0))
  return bothScopes(check, promising, 'reserve', {
    isOverridden: (node) => node.reserveOverrideMib !== null,
    fromOn: reserveOf,
    // Searches the decrease, so that the smallest change is the smallest number.
    leastOn: (node, above) => {
      const less = leastThat(
        (by) => fitsAt(node, reserveOf(node) - by),
        1,
        Math.min(reserveOf(node), reserveOf(node) - above),
      )
      return less === null ? null : reserveOf(node) - less
    },
    isSmaller: (a, b) => a > b,
    bound: -1,
  })
}

interface Setting {
  readonly isOverridden: (node: LiveNode) => boolean
  readonly fromOn: (node: LiveNode) => number
  /** The value closest to the current one that makes the task fit, among those better than `than`. */
  readonly leastOn: (node: LiveNode, than: number) => number | null
  readonly isSmaller: (a: number, b: number) => boolean
  readonly bound: number
}

/** For the whole cluster (without nodes that have an override), and for one node. */
function bothScopes(
  check: FitCheck,
  nodes: readonly LiveNode[],
  change: 'overcommit' | 'reserve',
  setting: Setting,
): readonly WouldFit[] {
  const found: WouldFit[] = []
  for (const scope of ['cluster', 'node'] as const) {
    let best: { readonly node: LiveNode; readonly to: number; readonly by: number } | null = null
    for (const node of nodes) {
      if (scope === 'cluster' && setting.isOverridden(node)) continue
      const from = setting.fromOn(node)
      // Nodes start from different values, so the size of the change is compared, not the value.
      const than =
        best === null
          ? setting.bound
          : scope === 'cluster'
            ? best.to
            : from + Math.sign(setting.bound - from) * best.by
      const to = setting.leastOn(node, than)
      if (to === null || (scope === 'cluster' && best !== null && !setting.isSmaller(to, best.to))) continue
      const by = Math.abs(to - from)
      if (best === null || scope === 'cluster' || by < best.by) best = { node, to, by }
    }
    if (best !== null)
      found.push({ ...check.placeOn(best.node), change, scope, from: setting.fromOn(best.node), to: best.to })
  }
  return found
}

/**
 * Returns the smallest integer from `low` to `high` from which on `holds` is true; null if it is false for
 * `high`.
 */
function leastThat(holds: (value: number) => boolean, low: number, high: number): number | null {
  if (low > high || !holds(high)) return null
  let [from, to] = [low, high]
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    if (holds(middle)) to = middle
    else from = middle + 1
  }
  return to
}

// ── changes of the request ────────────────────────────────────────────────────

/** Finds the largest smaller demand that fits. */
function smallerDemand(check: FitCheck, nodes: readonly LiveNode[]): WouldFit | null {
  const { vramMib } = check.task.spec
  let best: { readonly node: LiveNode; readonly to: Mib } | null = null
  for (const node of nodes) {
    const atLeast = (best?.to ?? 0) + 1
    const less = leastThat((by) => check.fits(node, { vramMib: vramMib - by }), 1, vramMib - atLeast)
    if (less !== null) best = { node, to: vramMib - less }
  }
  return best === null ? null : { ...check.placeOn(best.node), change: 'vram', from: vramMib, to: best.to }
}

function swappable(check: FitCheck, nodes: readonly LiveNode[]): WouldFit | null {
  const { noswap, gpuMode } = check.task.spec
  if (noswap === 0 || gpuMode === 'exclusive') return null
  const node = nodes.find((each) => check.fits(each, { noswap: 0 }))
  return node === undefined ? null : { ...check.placeOn(node), change: 'noswap' }
}

/** Tries one other group at a time, and the common pool. */
function otherGroups(check: FitCheck): readonly WouldFit[] {
  const { c, task } = check
  const found: WouldFit[] = []
  const names = [COMMON_POOL, ...[...c.groups.keys()].sort(byCodeUnits).slice(0, MAX_GROUPS_TRIED)]
  for (const name of names) {
    const isCommon = name === COMMON_POOL
    if (found.length === MAX_ALTERNATIVES) break
    if (isCommon ? task.spec.groups.length === 0 : task.spec.groups.includes(name)) continue
    const members = [...c.nodes.values()].filter(({ groups }) =>
      isCommon ? groups.length === 0 : groups.includes(name),
    )
    const groups = isCommon ? [] : [name]
    const node = nearest(members, task.spec).find((each) => check.fits(each, { groups }))
    if (node !== undefined)
      found.push({ ...check.placeOn(node), change: 'groups', group: isCommon ? null : name })
  }
  return found
}

// ── changes of other tasks ────────────────────────────────────────────────────

/** Finds the smallest placed task, by total VRAM, whose end would make room. */
function endOfOne(check: FitCheck, nodes: readonly LiveNode[]): WouldFit | null {
  let tried = 0
  let best: { readonly node: LiveNode; readonly task: LiveTask; readonly mib: Mib } | null = null
  for (const node of nodes) {
    const placements = new Set(node.gpus.flatMap((gpu) => gpu.placements))
    for (const placement of [...placements].sort(bySize)) {
      const mib = sizeMib(placement)
      const { task } = placement
      const isBetter: boolean =
        best === null ||
        mib < best.mib ||
        (mib === best.mib && byCodeUnits(task.spec.id, best.task.spec.id) < 0)
      if (!isBetter || ++tried > MAX_TASKS_TRIED) break
      if (!check.fitsAfter(node, (fork) => endTaskOn(fork, task, check.c.policy))) continue
      best = { node, task, mib }
      break
    }
  }
  if (best === null) return null
  const { node, task, mib } = best
  return { ...check.placeOn(node, task), change: 'task_ends', task, mib }
}

/** 1. Less VRAM. 2. Task id. */
function bySize(a: LivePlacement, b: LivePlacement): number {
  return sizeMib(a) - sizeMib(b) || byCodeUnits(a.task.spec.id, b.task.spec.id)
}

function sizeMib(placement: LivePlacement): Mib {
  return movableMib(placement) * placement.gpus.length
}

/**
 * Finds the first instant at which enough victims have been idle long enough, if none uses its GPU until
 * then.
 */
function whenIdle(check: FitCheck, nodes: readonly LiveNode[]): WouldFit | null {
  const { policy } = check.c
  let best: { readonly node: LiveNode; readonly at: Instant } | null = null
  for (const node of nodes) {
    const instants = eligibleInstantsOn(check, node).filter((at) => best === null || at < best.at)
    const fitsAt = (place: number) =>
      check.fitsAfter(node, (fork) => applyEligibility(fork, policy, instants[place] as Instant))
    const place = leastThat(fitsAt, 0, instants.length - 1)
    if (place !== null) best = { node, at: instants[place] as Instant }
  }
  return best === null ? null : { ...check.placeOn(best.node), change: 'victims_idle', at: best.at }
}

/** Instants at which its victims there become eligible, ascending. */
function eligibleInstantsOn({ c, task, now }: FitCheck, node: LiveNode): readonly Instant[] {
  const instants = new Set<Instant>()
  for (const gpu of node.gpus) {
    for (const placement of gpu.placements) {
      if (placement.isEligible || !mayTake(task, placement)) continue
      const at = eligibleFrom(placement, c.policy)
      if (at !== null && at > now) instants.add(at)
    }
  }
  return [...instants].sort((a, b) => a - b)
}

function uncordons(check: FitCheck, nodes: readonly LiveNode[]): readonly WouldFit[] {
  const found: WouldFit[] = []
  for (const node of nodes.filter(({ status, isCordoned }) => status === 'up' && isCordoned)) {
    if (!check.fitsAfter(node, (fork) => (fork.isCordoned = false))) continue
    found.push({ ...check.placeOn(node), change: 'uncordon' })
    if (found.length === MAX_ALTERNATIVES) break
  }
  return found
}

/**
 * Which nodes are tried, in this order.
 * 1. Most commit room on as many GPUs as the task requests; for a noswap task, which has no commit limit,
 *    most room left by swappable tasks.
 * 2. Node id.
 */
function nearest(nodes: readonly LiveNode[], spec: TaskSpec): readonly LiveNode[] {
  const roomMib =
    kindOf(spec) === 'noswap' ? (gpu: LiveGpu) => reservationRoomMib(gpu, 'noswap') : commitRoomMib
  const roomy = nodes.map((node) => ({ node, mib: kthLargest(node.gpus.map(roomMib), spec.gpuCount) }))
  const inOrder = roomy
    .sort((a, b) => b.mib - a.mib || byCodeUnits(a.node.id, b.node.id))
    .map(({ node }) => node)
  let gpus = 0
  return inOrder.filter((node) => (gpus += node.gpus.length) <= MAX_GPUS_TRIED)
}
