/**
 * Keeps the reservations of GPUs current, so that small tasks do not starve a large one
 * (`policy/reservation.ts` decides them).
 */
import type { Instant } from '../../../../protocol/units.ts'
import type { Reservation } from '../../../model/placement.ts'
import { isPlaceable } from '../../../policy/placement/feasible.ts'
import { lacksPreparingRoom, mustPrepare } from '../../../policy/placement/prepare.ts'
import type { Queued } from '../../../policy/placement/queue.ts'
import { byQueueOrder } from '../../../policy/placement/queue.ts'
import { lacksOnlyVram } from '../../../policy/placement/schedule.ts'
import {
  isSameReservation,
  leastShortfall,
  reservationOfEntry,
  reservationOfHead,
  reservesAsMuch,
  shortfallOn,
  whyNotReserving,
} from '../../../policy/reservation.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { EntryReservation, LiveEntry, LiveGpu, LiveNode, LiveTask } from '../../../state/facts.ts'
import type { Pool } from '../../../state/index/pool.ts'
import { askForPlacement, dropEntry } from '../lifecycle/entries.ts'
import { beginPreparing } from '../lifecycle/preparations.ts'

/**
 * Updates the reservations of all pools. Returns the next instant at which time alone creates one. Skipped
 * while no queue, no shortfall index, no shortfall of a head on its reserved GPUs and no head's age has
 * changed.
 */
export function updatePoolReservations(c: Cluster, now: Instant): Instant | null {
  let isSameMissing = true
  for (const { task, gpus, missingMib } of c.poolReservations.values()) {
    // Only VRAM may be missing now where something else was missing before, or its own change took it out of
    // the node's queue.
    joinNodeQueue(c, task, gpus)
    isSameMissing &&= shortfallOn(gpus, task) === missingMib
  }
  const last = c.lastReservationPass
  let changes = c.queueChanges
  for (const pool of c.pools.values()) changes += pool.shortfallVersion
  if (isSameMissing && last.changes === changes && (last.nextAt === null || now < last.nextAt))
    return last.nextAt
  let nextAt = renewAll(c, now)
  while (prepareHolders(c, now)) nextAt = renewAll(c, now)
  // The update itself may create a shortfall index and queue entries: the state after it counts.
  changes = c.queueChanges
  for (const pool of c.pools.values()) changes += pool.shortfallVersion
  c.lastReservationPass = { changes, nextAt }
  return nextAt
}

/**
 * A head that reserves GPUs of a node is prepared there early, so that it can start once the VRAM is free.
 * Returns true if any head has left its queue.
 */
function prepareHolders(c: Cluster, now: Instant): boolean {
  let isAny = false
  for (const { task, gpus } of [...c.poolReservations.values()]) {
    const [first] = gpus
    if (first === undefined || task.queue === null) continue
    if (!mustPrepare(task, first.node) || lacksPreparingRoom(task, first.node)) continue
    beginPreparing(c, task, first.node, now)
    isAny = true
  }
  return isAny
}

function renewAll(c: Cluster, now: Instant): Instant | null {
  if (c.policy.strategy === 'fifo' || c.pendingCount === 0) {
    releaseAllBut(c, null)
    return null
  }
  let holders: Map<Pool, Queued> | null = null
  let nextAt: Instant | null = null
  for (const queue of c.queues) {
    if (queue.size === 0) continue
    for (const head of queue.classHeads(queue.pool.largestEverMib(queue.shape))) {
      const at = head.task.pendingSince + c.policy.reservationAfterMs
      if (at > now) {
        nextAt = nextAt === null ? at : Math.min(nextAt, at)
        continue
      }
      holders ??= new Map()
      const other = holders.get(queue.pool)
      if (other === undefined || byQueueOrder(head, other) < 0) holders.set(queue.pool, head)
    }
  }
  releaseAllBut(c, holders)
  if (holders !== null) for (const [pool, holder] of holders) renew(c, pool, holder)
  return nextAt
}

function releaseAllBut(c: Cluster, holders: ReadonlyMap<Pool, Queued> | null): void {
  if (c.poolReservations.size === 0) return
  for (const pool of [...c.poolReservations.keys()]) if (holders?.has(pool) !== true) release(c, pool)
}

/** Aged entries of the node reserve their GPUs; the others do not. */
export function updateEntryReservations(c: Cluster, node: LiveNode, now: Instant): void {
  let reserving = NO_ENTRIES
  for (const entry of node.queue) {
    if (whyNotReserving(entry, c.policy, now) !== null) continue
    if (reserving === NO_ENTRIES) reserving = [entry]
    else reserving.push(entry)
  }
  if (reserving === NO_ENTRIES && !node.hasEntryReservations) return
  node.hasEntryReservations = reserving.length > 0
  if (reserving.length > 0 && isAsBefore(node.entryReservations, reserving)) return
  node.entryReservations = reserving.map((entry) => ({ entry, reservation: reservationOfEntry(entry) }))
  for (const gpu of node.gpus) {
    if (isReservedBy(gpu, reserving)) continue
    const reservations: Reservation[] = []
    for (const entry of reserving) if (entry.gpus.includes(gpu)) reservations.push(reservationOfEntry(entry))
    for (const reservation of gpu.reservations) if (reservation.by === 'head') reservations.push(reservation)
    setReservations(c, gpu, reservations)
  }
}

/** Never pushed to. */
const NO_ENTRIES: LiveEntry[] = []

/**
 * Returns true if the same entries reserve the same amounts as last applied. Nothing else changes these
 * reservations.
 */
function isAsBefore(before: readonly EntryReservation[], reserving: readonly LiveEntry[]): boolean {
  if (before.length !== reserving.length) return false
  for (let at = 0; at < reserving.length; at++) {
    const { entry, reservation } = before[at] as EntryReservation
    if (
      entry !== reserving[at] ||
      reservation.mib !== entry.needMib ||
      reservation.queueClass !== entry.task.spec.priority
    )
      return false
  }
  return true
}

/** Returns true if exactly these entries, as far as they use this GPU, reserve it in this order. */
function isReservedBy(gpu: LiveGpu, reserving: readonly LiveEntry[]): boolean {
  let at = 0
  for (const entry of reserving) {
    if (!entry.gpus.includes(gpu)) continue
    while (gpu.reservations[at]?.by === 'head') at += 1
    const reservation = gpu.reservations[at++]
    if (
      reservation?.task !== entry.task ||
      reservation.queueClass !== entry.task.spec.priority ||
      reservation.mib !== entry.needMib
    )
      return false
  }
  for (; at < gpu.reservations.length; at++) if (gpu.reservations[at]?.by === 'entry') return false
  return true
}

function renew(c: Cluster, pool: Pool, holder: Queued): void {
  const task = holder.task as LiveTask
  const reservation = reservationOfHead(holder)
  const present = c.poolReservations.get(pool)
  const isSame = present !== undefined && isSameReservation(present.reservation, reservation)
  if (
    isSame &&
    present.shortfallVersion === pool.shortfallVersion &&
    shortfallOn(present.gpus, task) === present.missingMib
  )
    return
  const best = leastShortfall(pool.nodesByShortfall(task.spec), task)
  if (isSame && present.gpus.every((gpu) => pool.nodes.has(gpu.node) && isPlaceable(gpu.node))) {
    const missingMib = shortfallOn(present.gpus, task)
    if (best === null || missingMib <= best.missingMib) {
      joinNodeQueue(c, task, present.gpus)
      c.poolReservations.set(pool, { ...present, missingMib, shortfallVersion: pool.shortfallVersion })
      return
    }
  }
  release(c, pool)
  if (best === null) return
  for (const gpu of best.gpus) setReservations(c, gpu, [...gpu.reservations, reservation])
  joinNodeQueue(c, task, best.gpus)
  c.poolReservations.set(pool, { task, reservation, ...best, shortfallVersion: pool.shortfallVersion })
}

/**
 * Where only VRAM is missing, the head also joins the node's queue, so that it may become the collector
 * there.
 */
function joinNodeQueue(c: Cluster, task: LiveTask, gpus: readonly LiveGpu[]): void {
  const [first] = gpus
  if (first === undefined || mustPrepare(task, first.node)) return
  if (task.placementEntry === null && lacksOnlyVram(task, gpus, c.policy.maxTasksPerGpu))
    askForPlacement(c, task, gpus, task.spec.vramMib)
}

function release(c: Cluster, pool: Pool): void {
  const reservation = c.poolReservations.get(pool)
  if (reservation === undefined) return
  c.poolReservations.delete(pool)
  for (const gpu of reservation.gpus) {
    const reservations: Reservation[] = []
    for (const each of gpu.reservations) if (each !== reservation.reservation) reservations.push(each)
    setReservations(c, gpu, reservations)
  }
  if (reservation.task.placementEntry !== null && !reservation.task.placementEntry.hasReserved)
    dropEntry(c, reservation.task.placementEntry)
}

/**
 * Replaces the reservations of a GPU. Blocked queues are searched again if any of them shrinks. Callers build
 * lists by pushing: filtered or spread lists have different array kinds, which would deoptimise the code that
 * reads them.
 */
function setReservations(c: Cluster, gpu: LiveGpu, reservations: Reservation[]): void {
  const isLess = gpu.reservations.some(
    (reservation) => !reservations.some((other) => reservesAsMuch(other, reservation)),
  )
  gpu.reservations = reservations
  if (isLess) for (const pool of gpu.node.pools) pool.version += 1
  c.touchGpu(gpu)
}
