/**
 * Why a placed task waits: for its node to start it, or in the node's queue for VRAM (semantics 5, "Return").
 */
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { EntryKind, Placement, Node } from '../../model/placement.ts'
import type { EntryFacts } from './explain-facts.ts'
import type { ReasonDetail, WaitExplanation, WaitReason } from './explain-reasons.ts'
import { nextVictimInWords } from './explain-sentence.ts'
import { gpusInWords, inMib, secondsUntil } from '../../model/words.ts'

/** The reasons of an entry of a node's queue. */
type EntryReason = Extract<
  WaitReason,
  | 'NODES_OFFLINE'
  | 'SWAP_SPACE_EXHAUSTED'
  | 'RESIDENCY_IMPOSSIBLE'
  | 'WAITING_PHYSICAL_VRAM'
  | 'NO_ELIGIBLE_VICTIM'
  | 'SWAPPING_OUT_FOR_YOU'
  | 'AWAITING_NODE_ACK'
  | 'RESERVED_FOR_ANOTHER'
  | 'QUEUED_BEHIND'
>

interface EntryDetail extends ReasonDetail {
  readonly reason: EntryReason
}

/**
 * Explains a swapped-out task that wants the GPU, a growth, or a pending task with VRAM reserved while
 * victims leave.
 */
export function explainReturn(facts: EntryFacts): WaitExplanation {
  const [primary, ...secondary] = reasonsOf(facts)
  const isVictimMissing = [primary, ...secondary].some(({ reason }) => reason === 'NO_ELIGIBLE_VICTIM')
  const retryAt = isVictimMissing ? facts.retryAt : null
  return {
    primary,
    secondary,
    sentence: sentenceOf(primary.reason, facts, retryAt),
    retryAt,
    queuePosition: null,
    servedBefore: facts.servedBefore,
  }
}

/** Explains a placed task whose node has not confirmed the start. */
export function explainAssigned(placement: Placement): WaitExplanation {
  const { node } = placement
  const ack = about('AWAITING_NODE_ACK', node)
  const isOffline = node.status !== 'up'
  return {
    primary: isOffline ? { ...ack, reason: 'NODES_OFFLINE' } : ack,
    secondary: isOffline ? [ack] : [],
    sentence:
      `The task is placed on ${gpusInWords(placement.gpus)}. ` +
      `The node ${isOffline ? 'is offline and ' : ''}has not confirmed the start.`,
    retryAt: null,
    queuePosition: null,
    servedBefore: null,
  }
}

/** In order of precedence. */
function reasonsOf(facts: EntryFacts): [EntryDetail, ...EntryDetail[]] {
  const { entry, verdict, needMib } = facts
  const isShort = verdict === 'not_covered'
  const isForNoswap = (entry.task.placement?.noswap ?? entry.task.spec.noswap) === 1
  // Earlier claimants keep the VRAM: no further victim is needed, those entries must be served first.
  const isKeptAway = isShort && facts.reachMib + facts.keptMib >= needMib
  const details: EntryDetail[] = []
  const add = (reason: EntryReason, haveMib: Mib) =>
    details.push(about(reason, entry.node, Math.max(0, haveMib), needMib))
  if (entry.node.status !== 'up') details.push(about('NODES_OFFLINE', entry.node))
  if (facts.lacksHostMemory) details.push(about('SWAP_SPACE_EXHAUSTED', entry.node))
  if (verdict === 'impossible') add('RESIDENCY_IMPOSSIBLE', facts.attainableMib)
  if (isShort && isForNoswap) add('WAITING_PHYSICAL_VRAM', facts.freeMib)
  if (isShort && !isKeptAway) add('NO_ELIGIBLE_VICTIM', facts.reachMib)
  if (entry.hasReserved) add('SWAPPING_OUT_FOR_YOU', facts.freeMib)
  if (facts.backsOffUntil !== null) details.push(about('AWAITING_NODE_ACK', entry.node))
  if (isKeptAway) add('RESERVED_FOR_ANOTHER', facts.reachMib)
  const [first, ...rest] = details
  return first === undefined
    ? [about('QUEUED_BEHIND', entry.node, Math.max(0, facts.reachMib), needMib)]
    : [first, ...rest]
}

function about(
  reason: EntryReason,
  node: Node,
  haveMib: Mib | null = null,
  needMib: Mib | null = null,
): EntryDetail {
  return { reason, nodeIds: [node.id], nodeCount: 1, haveMib, needMib }
}

const ENTRY_VERBS: Readonly<Record<EntryKind, { readonly waiting: string; readonly does: string }>> = {
  swap_in: { waiting: 'Waiting to return to', does: 'The task returns to' },
  growth: { waiting: 'Waiting for more VRAM on', does: 'The task gets more VRAM on' },
  placement: { waiting: 'Waiting to start on', does: 'The task starts on' },
}

function sentenceOf(reason: EntryReason, facts: EntryFacts, retryAt: Instant | null): string {
  const { entry, gpu, needMib, now } = facts
  const { waiting, does } = ENTRY_VERBS[entry.kind]
  const there = gpusInWords([gpu])
  const waits = `${waiting} ${there}: the task needs ${inMib(needMib)}`
  const victims = () => nextVictimInWords([gpu], entry.task, now, retryAt, facts.servedBefore)
  switch (reason) {
    case 'NODES_OFFLINE':
      return `${waiting} ${there}: the node is offline.`
    case 'SWAP_SPACE_EXHAUSTED':
      return (
        `${waits}, but then the host memory could not hold all tasks that may be swapped out at the same ` +
        'time.'
      )
    case 'AWAITING_NODE_ACK':
      return (
        `${waiting} ${there}: the last swap failed, and the next attempt is in ` +
        `${secondsUntil(facts.backsOffUntil ?? now, now)}.`
      )
    case 'RESIDENCY_IMPOSSIBLE':
      return (
        `${waits}, but at most ${inMib(facts.attainableMib)} is available while noswap tasks and foreign ` +
        'processes use VRAM.'
      )
    case 'WAITING_PHYSICAL_VRAM':
      return (
        `${waiting} ${there}: the noswap task needs ${inMib(needMib)}, but only ` +
        `${inMib(facts.freeMib)} is available.${victims()}`
      )
    case 'NO_ELIGIBLE_VICTIM':
      return (
        `${waits}, but only ${inMib(facts.reachMib)} is available, including the VRAM of tasks that may be ` +
        `swapped out.${victims()}`
      )
    case 'SWAPPING_OUT_FOR_YOU':
      return (
        `${does} ${there} once other tasks are swapped out: it needs ${inMib(needMib)}, and ` +
        `${inMib(facts.freeMib)} is available.`
      )
    case 'RESERVED_FOR_ANOTHER':
      return (
        `${waits}, but ${inMib(facts.keptMib)} is reserved for an earlier request of ` +
        `${facts.keptFor?.task.spec.name ?? 'another task'}.`
      )
    case 'QUEUED_BEHIND':
      return (
        `${does} ${gpusInWords(entry.gpus)} in the next scheduling cycle` +
        `${afterOthers(facts.servedBefore)}.`
      )
  }
}

function afterOthers(count: number): string {
  if (count === 0) return ''
  return `, after ${count} other ${count === 1 ? 'task' : 'tasks'} on that node`
}
