/** A node's queue of those that wait for bytes: in which order they are served, and how a decision is enacted. */
import type { Instant } from '../../../protocol/units.ts'
import type { EventValue } from '../../domain/event.ts'
import { hasHostRoomToGrow, isPlaceable } from '../../scheduler/feasible.ts'
import { missesOnlyBytes } from '../../scheduler/schedule.ts'
import { shapeOf } from '../../scheduler/shape.ts'
import { couldLeaveMib } from '../../swap/eligible.ts'
import { shortMib } from '../../swap/bytes.ts'
import { enactRound } from '../../swap/rounds.ts'
import type { EntryDecision } from '../../swap/swap.ts'
import { decideEntry } from '../../swap/swap.ts'
import { couldEverBeResident, inReturnOrder, nextCollector } from '../../swap/resume.ts'
import { fairnessScope } from '../cluster.ts'
import type { Cluster } from '../cluster.ts'
import type { Considered } from '../explain/decision-log.ts'
import { noteGrowth, noteGrowthRefused, noteLoneSwapOut, noteSwapIn, noteSwapOut } from '../explain/decision-log.ts'
import { dropEntry, letGo, own } from './entries.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, VainLook } from '../live.ts'
import { withOtherVictim } from '../what-if/other-victim.ts'
import { assign, grow, setResidency } from '../transitions.ts'

/** Owners first, then the others in return order, until nothing changes; then a collector if the node has none. */
export function serveNode(c: Cluster, node: LiveNode, now: Instant): void {
  const rounds = 2 * node.queue.length + 2
  for (let round = 0; round < rounds && node.queue.length > 0; round++) {
    const inOrder = inReturnOrder(node.queue, c.policy, now)
    let isChanged = false
    for (const entry of inOrder) if (entry.owns && isQueued(entry)) isChanged = serve(c, entry, now) || isChanged
    for (const entry of inOrder) {
      if (entry.owns || !isQueued(entry)) continue
      const { collector } = node
      isChanged = serve(c, entry, now) || isChanged
      // The collector has let go for it: what is left over is for whoever comes first, and that may be somebody who was asked already.
      if (collector !== null && node.collector === null) break
    }
    if (!isChanged && !appointCollector(c, node, now)) break
  }
  planNextLook(c, node, now)
}

function serve(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  // A placement that owns nothing is the pending queue's business; here it only waits to become the collector.
  if (entry.kind === 'placement' && !entry.owns) return false
  if (isBackingOff(entry, now)) return entry.owns ? loseHold(c, entry, now) : false
  if (entry.kind === 'placement' && !isStillAChoice(c, entry)) return loseHold(c, entry, now)
  if (entry.kind === 'growth' && !isPromisedHostMemory(entry)) return entry.owns ? loseHold(c, entry, now) : false
  if (isAsInVain(entry)) return false
  const decision = decideEntry(entry, entry.gpus, now, entry.isCollector)
  entry.vainLook = decision.kind === 'ready' || decision.kind === 'swap_out' ? null : lookOf(entry)
  switch (decision.kind) {
    case 'ready':
      return enactReady(c, entry, now)
    case 'wait':
      return own(c, entry)
    case 'swap_out':
      own(c, entry)
      enactSwapOut(c, entry, decision, null, now)
      return true
    case 'not_covered':
      if (!makeRoomOfCollector(c, entry, now)) return entry.owns ? loseHold(c, entry, now) : false
      // At once: by the next round somebody who comes after it would own the bytes.
      serve(c, entry, now)
      return true
    case 'impossible':
      return entry.owns ? loseHold(c, entry, now) : false
  }
}

/** Its GPUs' books, the node's host memory and its collector are as when nothing came of it: nothing comes of it now. */
function isAsInVain({ gpus, node, task, vainLook }: LiveEntry): boolean {
  if (vainLook === null || vainLook.hostUsedMib !== node.hostUsedMib) return false
  return vainLook.bookChanges === bookChangesOf(gpus) && vainLook.collector === node.collector && vainLook.spec === task.spec
}

function lookOf({ gpus, node, task }: LiveEntry): VainLook {
  return { bookChanges: bookChangesOf(gpus), hostUsedMib: node.hostUsedMib, collector: node.collector, spec: task.spec }
}

function bookChangesOf(gpus: readonly LiveGpu[]): number {
  let changes = 0
  for (const gpu of gpus) changes += gpu.bookChanges
  return changes
}

/** The node was closed, fell silent or changed groups: a task that has not started there goes elsewhere. */
function isStillAChoice(c: Cluster, { node, task }: LiveEntry): boolean {
  return isPlaceable(node) && node.attemptCount <= node.maxAttempts && c.poolFor(shapeOf(task.spec).poolKey).nodes.has(node)
}

/** Above C all swappable tasks of a GPU must find room in the host's memory at once, also when it is a growth that takes them there. */
function isPromisedHostMemory({ gpus, needMib, task }: LiveEntry): boolean {
  return hasHostRoomToGrow(gpus, needMib, task.placement?.noswap === 1)
}

/** After a failed swap-in it is not tried again at once. */
function isBackingOff(entry: LiveEntry, now: Instant): boolean {
  return entry.kind === 'swap_in' && (entry.task.placement?.backOffUntil ?? 0) > now
}

/** Its bytes are free: the task starts, returns or grows. */
function enactReady(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  const { task, gpus, needMib } = entry
  const placement = task.placement
  if (entry.kind === 'placement') {
    dropEntry(c, entry)
    assign(c, task, gpus, 'after_swap', now)
    return true
  }
  if (placement === null) throw new Error(`broken invariant: task ${task.spec.id} waits for bytes without a placement`)
  dropEntry(c, entry)
  if (entry.kind === 'growth') {
    const mib = placement.demandMib + needMib
    placement.heldGrowth = null
    grow(c, placement, mib, now)
    noteGrowth(c, placement, entry, needMib, now)
    c.recorder.turn.effects.push({ kind: 'grant', ...addressOf(placement), mib, reason: null })
    return true
  }
  c.recorder.taskEvent(now, 'swap_in_decided', task, placement.node.id, { waited_ms: now - entry.askedAt, mib: needMib })
  noteSwapIn(c, entry, now)
  c.recorder.turn.effects.push({ kind: 'swap_in', ...addressOf(placement), generation: placement.generation, forceActive: false })
  setResidency(c, placement, 'swapping_in', null, now)
  return true
}

/** Marks the victims, closes rounds, and orders the swap-outs. */
function enactSwapOut(
  c: Cluster,
  entry: LiveEntry,
  decided: Extract<EntryDecision, { kind: 'swap_out' }>,
  considered: Considered | null,
  now: Instant,
): void {
  const number = c.recorder.nextDecision++
  const decision = withOtherVictim(c, entry, decided, number)
  const { choice } = decision
  enactRound(
    entry.node.gpus.map((gpu) => gpu.rounds),
    choice,
    number,
  )
  c.recorder.dirtyNode(entry.node)
  bookFairness(c, entry.node, decision)
  const data: Record<string, EventValue> = {
    decision: number,
    for: entry.kind,
    victims: choice.victims.map((victim) => ({ id: victim.id, gpu: victim.gpu, class: victim.class })),
    closed_rounds: choice.closedRounds.map((closed) => ({ gpu: closed.gpu, class: closed.class })),
    missing: decision.shortages.map((short) => ({ gpu: short.gpu, mib: short.missingMib, candidates: short.candidates.length })),
  }
  const causedBy = entry.task.lastEventSeq
  c.recorder.taskEvent(now, 'swap_decided', entry.task, entry.node.id, data)
  noteSwapOut(c, entry, decision, { number, considered, causedBy }, now)
  for (const victim of choice.victims) {
    const placement = c.tasks.get(victim.id)?.placement
    if (placement === null || placement === undefined) throw new Error(`broken invariant: victim ${victim.id} is not placed`)
    orderSwapOut(c, placement, entry, now)
  }
}

function bookFairness(c: Cluster, node: LiveNode, { choice, shortages }: Extract<EntryDecision, { kind: 'swap_out' }>): void {
  const victims = new Map<number, Set<string>>()
  for (const victim of choice.victims) victims.set(victim.gpu, (victims.get(victim.gpu) ?? new Set()).add(victim.id))
  const nobody = new Set<string>()
  for (const { gpu: index, candidates } of shortages) {
    const gpu = node.gpus[index]
    if (gpu === undefined) continue
    // Who leaves for an earlier GPU of this decision is not compared here (semantics 5, "Bound").
    const compared = candidates.filter((candidate) => !choice.victims.some((victim) => victim.id === candidate.id && victim.gpu < index))
    for (const isP0 of [false, true]) {
      const ids = compared.filter((candidate) => candidate.isP0 === isP0).map((candidate) => candidate.id)
      if (ids.length > 0) c.fairness.decided(fairnessScope(gpu, isP0), ids, victims.get(index) ?? nobody)
    }
  }
}

/** One victim's way out begins. */
export function orderSwapOut(c: Cluster, placement: LivePlacement, forEntry: LiveEntry | null, now: Instant): void {
  placement.leavesFor = forEntry
  const forceActive = placement.wantsGpu
  if (placement.entry !== null) dropEntry(c, placement.entry)
  c.recorder.turn.effects.push({ kind: 'swap_out', ...addressOf(placement), generation: placement.generation, forceActive })
  const cause = forEntry?.task ?? placement.task
  setResidency(c, placement, 'swapping_out', forEntry === null ? 'ordered' : `for ${forEntry.task.spec.id}`, now, cause.lastEventSeq)
}

/** Claims the bytes of a placement that the victims in `decision` will free. */
export function claim(c: Cluster, entry: LiveEntry, considered: Considered | null, now: Instant): boolean {
  const decision = decideEntry(entry, entry.gpus, now, false)
  if (decision.kind !== 'swap_out' && decision.kind !== 'wait') {
    dropEntry(c, entry)
    return false
  }
  own(c, entry)
  if (decision.kind === 'swap_out') enactSwapOut(c, entry, decision, considered, now)
  return true
}

/** No longer covered: it owns nothing, at once, on all its GPUs. A placement goes back to the pending queue. */
function loseHold(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  const { task } = entry
  if (entry.kind === 'placement') {
    dropEntry(c, entry)
    c.enqueue(task, now)
  } else letGo(c, entry)
  return true
}

/** A P0 entry needs the bytes of a collector that is not P0, and would be covered without it: the collector lets go. */
function makeRoomOfCollector(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  const collector = entry.node.collector
  if (collector === null || collector === entry || entry.task.spec.priority !== 0 || collector.task.spec.priority === 0) return false
  return isCoveredWithout(c, entry, collector, now) && loseHold(c, collector, now)
}

function isCoveredWithout(c: Cluster, entry: LiveEntry, other: LiveEntry, now: Instant): boolean {
  const positions = other.gpus.map((gpu) => gpu.owners.indexOf(other))
  other.gpus.forEach((gpu, i) => gpu.owners.splice(positions[i] as number, 1))
  const decision = decideEntry(entry, entry.gpus, now, false)
  other.gpus.forEach((gpu, i) => gpu.owners.splice(positions[i] as number, 0, other))
  return decision.kind !== 'not_covered' && decision.kind !== 'impossible'
}

/**
 * A growth that has waited `reservation_after_seconds`: one that can never be, or of a noswap task, is refused; a swappable task becomes
 * a victim itself, and returns with the larger demand (semantics 1, "growth").
 */
export function settleOldGrowths(c: Cluster, node: LiveNode, now: Instant): void {
  let old: LiveEntry[] | null = null
  for (const entry of node.queue) {
    if (entry.kind === 'growth' && now - entry.askedAt >= c.policy.reservationAfterMs) (old ??= []).push(entry)
  }
  if (old === null) return
  for (const entry of old) {
    const placement = entry.task.placement
    if (placement === null) continue
    if (placement.noswap === 1) refuseGrowth(c, entry, placement, 'WAITING_PHYSICAL_VRAM', now)
    else if (!couldEverBeResident(entry)) refuseGrowth(c, entry, placement, 'RESIDENCY_IMPOSSIBLE', now)
    else if (!isPromisedHostMemory(entry)) refuseGrowth(c, entry, placement, 'SWAP_SPACE_EXHAUSTED', now)
    else if (!entry.owns && mayLeaveToReturnGrown(placement, now)) {
      orderSwapOut(c, placement, null, now)
      noteLoneSwapOut(c, placement, 'return_grown', now)
    }
  }
}

function mayLeaveToReturnGrown(placement: LivePlacement, now: Instant): boolean {
  const { node, demandMib, gpus } = placement
  const isRoomInHost = node.hostUsedMib + demandMib * gpus.length <= node.hostSwapMib
  return placement.residency === 'resident' && now >= placement.backOffUntil && isRoomInHost
}

function refuseGrowth(c: Cluster, entry: LiveEntry, placement: LivePlacement, reason: string, now: Instant): void {
  placement.heldGrowth = null
  dropEntry(c, entry)
  c.recorder.taskEvent(now, 'growth_refused', placement.task, placement.node.id, { attempt: placement.attempt, reason })
  noteGrowthRefused(c, entry, reason, now)
  c.recorder.turn.effects.push({ kind: 'refuse_growth', ...addressOf(placement), mib: placement.demandMib, reason })
}

/** The oldest that has waited long begins to collect: it owns all its bytes, and victims leave as they ripen. */
function appointCollector(c: Cluster, node: LiveNode, now: Instant): boolean {
  if (node.collector !== null) return false
  const entry = nextCollector(node.queue, (one) => missesBytesAlone(c, one, now), c.policy, now)
  if (entry === null) return false
  entry.isCollector = true
  node.collector = entry
  own(c, entry)
  return true
}

/** Whoever would let go again at once, because something else than bytes is in its way, does not collect. */
function missesBytesAlone(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  switch (entry.kind) {
    case 'placement':
      return missesOnlyBytes(entry.task, entry.gpus, c.policy.maxTasksPerGpu)
    case 'growth':
      return isPromisedHostMemory(entry)
    case 'swap_in':
      return !isBackingOff(entry, now)
  }
}

/** Time alone changes things here at few instants: a rank rises, a growth is settled, an entry begins to hold its GPUs, a back-off ends. */
function planNextLook(c: Cluster, node: LiveNode, now: Instant): void {
  let next = Infinity
  for (const entry of node.queue) {
    const backOffUntil = entry.kind === 'placement' ? 0 : (entry.task.placement?.backOffUntil ?? 0)
    next = sooner(next, entry.askedAt + c.policy.swapInAgingMs, now)
    next = sooner(next, entry.askedAt + c.policy.reservationAfterMs, now)
    next = sooner(next, backOffUntil, now)
  }
  const wakeAt = next === Infinity ? null : next
  if (wakeAt === node.wakeAt) return
  node.cancelWake?.()
  node.wakeAt = wakeAt
  node.cancelWake = wakeAt === null ? null : c.wake(wakeAt, () => lookAgain(c, node))
}

/** The instant of `planNextLook` has come. */
export function lookAgain(c: Cluster, node: LiveNode): void {
  node.wakeAt = null
  c.touchNode(node)
}

function sooner(next: Instant, at: Instant, now: Instant): Instant {
  return at > now && at < next ? at : next
}

/** Only P0 holders that it may not swap stand in its way: such an entry holds no GPU back (semantics 5, second exception). */
export function isBehindP0Only(entry: LiveEntry): boolean {
  for (const gpu of entry.gpus) if (shortMib(gpu, entry) > couldLeaveMib(gpu, entry.task)) return true
  return false
}

function isQueued(entry: LiveEntry): boolean {
  return entry.node.queue.includes(entry)
}

function addressOf(placement: LivePlacement): { nodeId: string; taskId: string; attempt: number } {
  return { nodeId: placement.node.id, taskId: placement.task.spec.id, attempt: placement.attempt }
}
