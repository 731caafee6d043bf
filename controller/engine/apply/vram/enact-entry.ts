/**
 * Carries out a decision about an entry of a node's queue: the task starts, returns or grows, victims leave,
 * or the reservation is cancelled.
 */
import type { Instant } from '../../../../protocol/units.ts'
import type { EventValue } from '../../../model/event.ts'
import { VICTIM_CLASSES } from '../../../model/victim-class.ts'
import { enactRound } from '../../../policy/swap/rounds.ts'
import type { EntryDecision } from '../../../policy/swap/swap.ts'
import { decideEntry } from '../../../policy/swap/swap.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { Considered } from '../decision-log.ts'
import { noteGrowth, noteSwapIn, noteSwapOut } from '../decision-log.ts'
import { dropEntry, releaseVram, reserveVram } from '../lifecycle/entries.ts'
import type { LiveEntry, LiveNode, LivePlacement } from '../../../state/facts.ts'
import { assign, grow, setResidency } from '../lifecycle/transitions.ts'

/** The VRAM is free: the task starts, returns or grows. */
export function enactReady(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  const { task, gpus, needMib } = entry
  const placement = task.placement
  if (entry.kind === 'placement') {
    dropEntry(c, entry)
    assign(c, task, gpus, 'after_swap', now)
    return true
  }
  if (placement === null)
    throw new Error(`broken invariant: task ${task.spec.id} waits for bytes without a placement`)
  dropEntry(c, entry)
  if (entry.kind === 'growth') {
    const mib = placement.demandMib + needMib
    placement.heldGrowth = null
    grow(c, placement, mib, now)
    noteGrowth(c, placement, entry, needMib, now)
    c.eventLog.transaction.effects.push({ kind: 'grant', ...addressOf(placement), mib, reason: null })
    return true
  }
  c.eventLog.taskEvent(now, 'swap_in_decided', task, placement.node.id, {
    waited_ms: now - entry.askedAt,
    mib: needMib,
  })
  noteSwapIn(c, entry, now)
  placement.isEager = false
  c.eventLog.transaction.effects.push({
    kind: 'swap_in',
    ...addressOf(placement),
    generation: placement.generation,
    forceActive: false,
  })
  setResidency(c, placement, 'swapping_in', null, now)
  return true
}

/** Records the decision in rounds and fairness, and orders the swap-outs. */
export function enactSwapOut(
  c: Cluster,
  entry: LiveEntry,
  decided: Extract<EntryDecision, { kind: 'swap_out' }>,
  considered: Considered | null,
  now: Instant,
): void {
  const number = c.eventLog.nextDecision++
  const [taskId, nodeId] = [entry.task.spec.id, entry.node.id]
  const choice = c.victimPolicy({ ...decided, decision: number, taskId, nodeId })
  const decision = { ...decided, choice }
  enactRound(
    entry.node.gpus.map((gpu) => gpu.rounds),
    choice,
    number,
  )
  c.eventLog.dirtyNode(entry.node)
  bookFairness(c, entry.node, decision)
  const data: Record<string, EventValue> = {
    decision: number,
    for: entry.kind,
    victims: choice.victims.map((victim) => ({ id: victim.id, gpu: victim.gpu, class: victim.class })),
    closed_rounds: choice.closedRounds.map((closed) => ({ gpu: closed.gpu, class: closed.class })),
    missing: decision.shortages.map((short) => ({
      gpu: short.gpu,
      mib: short.missingMib,
      candidates: short.candidates.length,
    })),
  }
  const causedBy = entry.task.lastEventSeq
  c.eventLog.taskEvent(now, 'swap_decided', entry.task, entry.node.id, data)
  noteSwapOut(c, entry, decision, { number, considered, causedBy }, now)
  for (const victim of choice.victims) {
    const placement = c.tasks.get(victim.id)?.placement
    if (placement === null || placement === undefined)
      throw new Error(`broken invariant: victim ${victim.id} is not placed`)
    orderSwapOut(c, placement, entry, now)
  }
}

function bookFairness(
  c: Cluster,
  node: LiveNode,
  { choice, shortages }: Extract<EntryDecision, { kind: 'swap_out' }>,
): void {
  const victims = new Map<number, Set<string>>()
  for (const victim of choice.victims)
    victims.set(victim.gpu, (victims.get(victim.gpu) ?? new Set()).add(victim.id))
  const none = new Set<string>()
  for (const { gpu: index, candidates } of shortages) {
    const gpu = node.gpus[index]
    if (gpu === undefined) continue
    // Victims of an earlier GPU of this decision are not compared here (semantics 5, "Bound").
    const compared = candidates.filter(
      (candidate) => !choice.victims.some((victim) => victim.id === candidate.id && victim.gpu < index),
    )
    for (const victimClass of VICTIM_CLASSES) {
      const ids = compared.filter((candidate) => candidate.class === victimClass).map(({ id }) => id)
      if (ids.length > 0) c.fairness.decided(gpu.fairnessScopes[victimClass], ids, victims.get(index) ?? none)
    }
  }
}

/** Orders the swap-out of one placement. */
export function orderSwapOut(
  c: Cluster,
  placement: LivePlacement,
  forEntry: LiveEntry | null,
  now: Instant,
): void {
  placement.leavesFor = forEntry
  const forceActive = placement.wantsGpu
  c.eventLog.transaction.effects.push({
    kind: 'swap_out',
    ...addressOf(placement),
    generation: placement.generation,
    forceActive,
  })
  const cause = forEntry?.task ?? placement.task
  setResidency(
    c,
    placement,
    'swapping_out',
    forEntry === null ? 'ordered' : `for ${forEntry.task.spec.id}`,
    now,
    cause.lastEventSeq,
  )
}

/** `freed`: victims are swapped out for the task and may free more VRAM than it needs. */
export type Placed = 'not' | 'placed' | 'freed'

/** Reserves the VRAM of a placement that is leaving, or that victims will free. */
export function reserveForPlacement(
  c: Cluster,
  entry: LiveEntry,
  considered: Considered | null,
  now: Instant,
): Placed {
  const decision = decideEntry(entry, entry.gpus, now, false)
  if (decision.kind !== 'swap_out' && decision.kind !== 'wait') {
    dropEntry(c, entry)
    return 'not'
  }
  reserveVram(c, entry)
  if (decision.kind === 'wait') return 'placed'
  enactSwapOut(c, entry, decision, considered, now)
  return 'freed'
}

/**
 * Releases the reservation of an entry that is no longer covered, on all its GPUs. A placement goes back to
 * the pending queue.
 */
export function cancelReservation(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  const { task } = entry
  if (entry.kind === 'placement') {
    dropEntry(c, entry)
    c.enqueue(task, now)
  } else releaseVram(c, entry)
  return true
}

export function addressOf(placement: LivePlacement): { nodeId: string; taskId: string; attempt: number } {
  return { nodeId: placement.node.id, taskId: placement.task.spec.id, attempt: placement.attempt }
}
