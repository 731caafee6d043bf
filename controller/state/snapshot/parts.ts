/** The parts of a cluster in a snapshot that are neither a task nor a node, each in both directions. */
import type { Instant } from '../../../protocol/units.ts'
import { policyOf } from '../../model/config.ts'
import type { Reservation } from '../../model/placement.ts'
import type { TaskSpec } from '../../../protocol/task.ts'
import type { CancelTimer, TimerId } from '../../ports/clock.ts'
import type { Cluster } from '../cluster.ts'
import { blockedTasksIn } from '../cluster.ts'
import type { LiveNode, LivePlacement, LiveTask } from '../facts.ts'
import type { PendingQueue } from '../index/pending-queue.ts'
import type { Pool } from '../index/pool.ts'
import type { Captured, References } from './kinds.ts'

/** The action of a timer, and how to set the timer again. */
export interface TimerRestorer {
  wake(id: TimerId, fn: (now: Instant) => void): CancelTimer
  readonly ofNode: Readonly<Record<NodeTimer, (c: Cluster, node: LiveNode, now: Instant) => void>>
  readonly probe: (c: Cluster, placement: LivePlacement, now: Instant) => void
  readonly start: (c: Cluster, task: LiveTask, now: Instant) => void
  readonly runtime: (c: Cluster, placement: LivePlacement, now: Instant) => void
  readonly startWait: (c: Cluster) => void
}

export const NODE_TIMERS = ['cancelDrain', 'cancelTrial', 'cancelWake', 'cancelEager'] as const
type NodeTimer = (typeof NODE_TIMERS)[number]

interface Restoring {
  readonly refs: References
  readonly timers: TimerRestorer
  readonly tasks: readonly Captured[]
  readonly openCount: number
}

interface Part<J> {
  capture(c: Cluster, refs: References): J
  restore(c: Cluster, captured: J, context: Restoring): void
}
const part = <J>(capture: Part<J>['capture'], restore: Part<J>['restore']): Part<unknown> =>
  ({ capture, restore }) as Part<unknown>

/** Fields of the cluster that are values. */
const VALUES = [
  'changes',
  'queueChanges',
  'queueChangesSeen',
  'lastReservationPass',
  'broker',
  'wasPaused',
  'nextTaskSeq',
  'nextNodeOrdinal',
] as const satisfies readonly (keyof Cluster)[]

/** In the order in which they are restored: later ones use, or correct, what earlier ones have set. */
export const PARTS: Readonly<Record<string, Part<unknown>>> = {
  settings: part(
    (c) => ({ config: c.config, groups: [...c.groups.values()], pools: [...c.pools.keys()] }),
    (c, { config, groups, pools }) => {
      c.config = config
      c.policy = policyOf(config.fields)
      for (const group of groups) c.groups.set(group.id, group)
      for (const key of pools) c.poolFor(key)
    },
  ),
  /** The shape and owner of each queue, in order, as the fields of one of its tasks. */
  queues: part(
    (c) => c.queues.map(specOf),
    (c, specs) => {
      for (const spec of specs) c.queueFor(spec as TaskSpec)
    },
  ),
  openTasks: part(
    () => null,
    (c, _, { refs, tasks, openCount }) => {
      for (let number = 0; number < openCount; number++)
        openTask(c, refs.task(number), tasks[number] as Captured)
    },
  ),
  poolStates: part(
    (c, refs) => Array.from(c.pools.values(), (pool) => capturePool(c, pool, refs)),
    (c, pools, { refs }) => {
      for (const captured of pools) restorePool(c, captured, refs)
    },
  ),
  probes: placementTimers('probes', 'probe'),
  startTimers: part(
    (c, refs) => timersOf(c.startTimers, (task) => refs.tasks.of(task), refs),
    (c, starts, { refs, timers }) => {
      for (const [number, id] of starts) {
        const task = refs.task(number)
        c.startTimers.set(
          task,
          timers.wake(id, (now) => timers.start(c, task, now)),
        )
      }
    },
  ),
  runtimeLimits: placementTimers('runtimeLimits', 'runtime'),
  markedTasks: part(
    ({ avoiders, refusedTasks }, refs) => ({
      avoiders: Array.from(avoiders, (task) => refs.tasks.of(task)),
      refused: Array.from(refusedTasks, (task) => refs.tasks.of(task)),
    }),
    (c, { avoiders, refused }, { refs }) => {
      for (const number of avoiders) c.avoiders.add(refs.task(number))
      for (const number of refused) c.refusedTasks.add(refs.task(number))
    },
  ),
  /** In heap order; a placement that has ended has no task. */
  eligibilityTimers: part(
    (c, refs) =>
      c.eligibilityTimers.entries().map(([at, placement]) => {
        const { task, submissionNumber } = placement
        return [at, task.placement === placement ? refs.tasks.of(task) : null, submissionNumber] as const
      }),
    (c, entries, { refs }) => {
      c.eligibilityTimers.restore(
        entries.map(([at, task, number]) => [
          at,
          task === null ? endedPlacement(number) : (refs.task(task).placement as LivePlacement),
        ]),
      )
    },
  ),
  eagerChecks: part(
    ({ eagerChecks: { all } }, refs) => ({
      nodes: all.nodes.map((node) => refs.nodes.of(node)),
      keptFor: all.keptFor.map(
        ([task, kept]) => [refs.tasks.of(task), kept.map((node) => refs.nodes.of(node))] as const,
      ),
    }),
    (c, { nodes, keptFor }, { refs }) => {
      c.eagerChecks.restore({
        nodes: nodes.map((number) => refs.node(number)),
        keptFor: keptFor.map(([task, kept]) => [refs.task(task), kept.map((number) => refs.node(number))]),
      })
    },
  ),
  leases: part(
    (c, refs) =>
      [...c.leases.renewals()].flatMap(([task, at]) =>
        c.tasks.get(task.spec.id) === task ? [[refs.tasks.of(task), at] as const] : [],
      ),
    (c, leases, { refs }) => {
      for (const [task, renewedAt] of leases) c.leases.renew(refs.task(task), renewedAt)
    },
  ),
  totals: part(
    (c) => ({
      submissionKeys: [...c.submissionKeys.records()],
      activity: c.activity.all(),
      finished: { ...c.finished },
      swapTotals: { ...c.swapTotals },
    }),
    (c, { submissionKeys, activity, finished, swapTotals }) => {
      c.submissionKeys.restore(submissionKeys)
      c.activity.restore(activity)
      Object.assign(c.finished, finished)
      Object.assign(c.swapTotals, swapTotals)
    },
  ),
  storeStatus: part(
    ({ history, contacts, heardOfLoss, startWait, recovery, endedUnconfirmed, freeze }, refs) => ({
      history: history.capture(),
      contacts: [...contacts],
      heardOfLoss: [...heardOfLoss],
      startWait:
        startWait === null
          ? null
          : { awaited: [...startWait.awaited], timer: refs.timerId(startWait.cancel) },
      recovery: recovery === null ? null : { ...recovery, awaited: [...recovery.awaited] },
      endedUnconfirmed: [...endedUnconfirmed],
      freeze: { ...freeze, released: [...freeze.released] },
    }),
    (c, { history, contacts, heardOfLoss, startWait, recovery, endedUnconfirmed, freeze }, { timers }) => {
      c.history.restore(history)
      for (const [nodeId, ahead] of contacts) c.contacts.set(nodeId, ahead)
      c.aheadCount = contacts.filter(([, ahead]) => ahead !== null).length
      c.isStoreBehind = 2 * c.aheadCount > c.contacts.size
      if (c.aheadCount > 0) c.blockedTasks = blockedTasksIn(c.contacts)
      for (const nodeId of heardOfLoss) c.heardOfLoss.add(nodeId)
      if (startWait !== null) {
        const cancel = timers.wake(startWait.timer, () => timers.startWait(c))
        c.startWait = { awaited: new Set(startWait.awaited), cancel }
      }
      if (recovery !== null) c.recovery = { ...recovery, awaited: new Set(recovery.awaited) }
      for (const [taskId, attempt] of endedUnconfirmed) c.endedUnconfirmed.set(taskId, attempt)
      c.freeze = { ...freeze, released: new Set(freeze.released) }
    },
  ),
  values: part(
    (c) => ({ ...Object.fromEntries(VALUES.map((name) => [name, c[name]])), queueUs: c.waiting.queueUs }),
    (c, { queueUs, ...values }, { refs }) => {
      Object.assign(c, values)
      c.waiting.queueUs = queueUs
      c.queuedEntries = refs.nodes.items.reduce((sum, { queue }) => sum + queue.length, 0)
    },
  ),
  indexState: part(
    (c, refs) => {
      const { touchedNodes, staleGpus, ...flags } = c.indexState
      return {
        ...flags,
        touchedNodes: touchedNodes.flatMap((node) => (refs.nodes.has(node) ? [refs.nodes.of(node)] : [])),
        // A GPU that was replaced, or whose node was forgotten, is in no pool anymore.
        staleGpus: staleGpus
          .filter((gpu) => refs.nodes.has(gpu.node) && gpu.node.gpus.includes(gpu))
          .map((gpu) => refs.gpuNumber(gpu)),
      }
    },
    (c, { touchedNodes, staleGpus, ...flags }, { refs }) => {
      c.restoreIndexState({
        ...flags,
        touchedNodes: touchedNodes.map((number) => refs.node(number)),
        staleGpus: staleGpus.map((number) => refs.gpu(number)),
      })
    },
  ),
}

function placementTimers(name: 'probes' | 'runtimeLimits', due: 'probe' | 'runtime'): Part<unknown> {
  return part(
    (c, refs) => timersOf(c[name], ({ task }) => refs.tasks.of(task), refs),
    (c, captured, { refs, timers }) => {
      for (const [number, id] of captured) {
        const placement = refs.task(number).placement as LivePlacement
        c[name].set(
          placement,
          timers.wake(id, (now) => timers[due](c, placement, now)),
        )
      }
    },
  )
}

function timersOf<K>(
  timers: ReadonlyMap<K, CancelTimer>,
  numberOf: (key: K) => number,
  refs: References,
): (readonly [task: number, timer: TimerId])[] {
  return Array.from(timers, ([key, cancel]) => [numberOf(key), refs.timerId(cancel)] as const)
}

function openTask(c: Cluster, task: LiveTask, { isQueued, isAside }: Captured): void {
  const { gpuCount, groups } = task.spec
  c.tasks.set(task.spec.id, task)
  c.submissions.add(task, c.tasks.size)
  c.enterState(task, task.state, null)
  if (task.state === 'pending') c.countPending(task, 1)
  for (const { nodeId } of task.preparations) c.countPreparation(task, nodeId, 1)
  if (task.placement !== null || task.placementEntry?.hasReserved === true) c.countPlaced(task, 1)
  if (isQueued === true) c.queueFor(task.spec).add(task)
  if (isAside === true) task.queue?.setAside(task)
  if (task.waitCountedFrom === null) return
  c.waiting.tasks += 1
  c.waiting.gpus += gpuCount
  if (groups.length > 0) c.waiting.groups.begin(groups, gpuCount, task.waitCountedFrom)
}

function capturePool(c: Cluster, pool: Pool, refs: References) {
  const reserved = c.poolReservations.get(pool)
  const { shortfallVersion, indexes } = pool.shortfallIndexes
  return {
    key: pool.key,
    version: pool.version,
    membershipVersion: pool.membershipVersion,
    shortfallVersion,
    /** The shortfall indexes, each as last updated, with the changes not yet applied. */
    indexes: indexes.map(({ places, unseen, ...index }) => ({
      ...index,
      places: places.map(([node, roomMib, everMib]) => [refs.nodes.of(node), roomMib, everMib] as const),
      unseen: unseen.map((node) => refs.nodes.of(node)),
    })),
    reservation:
      reserved === undefined
        ? null
        : {
            ...reserved,
            task: refs.tasks.of(reserved.task),
            reservation: refs.reservations.of(reserved.reservation),
            gpus: reserved.gpus.map((gpu) => refs.gpuNumber(gpu)),
          },
  }
}

function restorePool(c: Cluster, captured: ReturnType<typeof capturePool>, refs: References): void {
  const { key, version, membershipVersion, shortfallVersion, indexes, reservation } = captured
  const pool = c.poolFor(key)
  Object.assign(pool, { version, membershipVersion })
  pool.restoreShortfallIndexes({
    shortfallVersion,
    indexes: indexes.map(({ places, unseen, ...index }) => ({
      ...index,
      places: places.map(([node, roomMib, everMib]) => [refs.node(node), roomMib, everMib] as const),
      unseen: unseen.map((number) => refs.node(number)),
    })),
  })
  if (reservation === null) return
  c.poolReservations.set(pool, {
    ...reservation,
    task: refs.task(reservation.task),
    reservation: refs.reservations.items[reservation.reservation] as Reservation,
    gpus: reservation.gpus.map((number) => refs.gpu(number)),
  })
}

/** Returns the fields that tasks of this queue have in common. */
function specOf({
  shape,
  owner,
}: PendingQueue): Pick<TaskSpec, 'gpuMode' | 'noswap' | 'gpuCount' | 'groups' | 'priority' | 'owner'> {
  return {
    gpuMode: shape.kind === 'exclusive' ? 'exclusive' : 'shared',
    noswap: shape.kind === 'noswap' ? 1 : 0,
    gpuCount: shape.gpuCount,
    groups: shape.poolKey === '' ? [] : shape.poolKey.split('\n'),
    priority: shape.isP0 ? 0 : 1,
    owner,
  }
}

/** A stand-in that stays in the heap until its instant, without effect. */
function endedPlacement(submissionNumber: number): LivePlacement {
  const task = { placement: null } as LiveTask
  return { task, submissionNumber, eligibilityTimerAt: null } as LivePlacement
}
