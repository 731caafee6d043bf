/**
 * A simulation's hand in a swap decision: who could have left, and one decision that is to take somebody
 * else. Off unless a simulation sets it.
 */
import { chooseWithVictim } from '../../swap/chosen-victim.ts'
import type { EntryDecision } from '../../swap/swap.ts'
import type { Cluster } from '../cluster.ts'
import type { LiveEntry } from '../live.ts'

export interface SwapHand {
  /** The decision of that number takes this task, if it may leave then. */
  readonly other: { readonly decision: number; readonly victim: string } | null
  readonly onChoice: (seen: SwapChoiceSeen) => void
}

export interface SwapChoiceSeen {
  readonly decision: number
  /** Who needed the bytes. */
  readonly taskId: string
  readonly nodeId: string
  readonly victimIds: readonly string[]
  /** All who could leave, in the order of the GPUs that are short. */
  readonly candidateIds: readonly string[]
}

type SwapOut = Extract<EntryDecision, { kind: 'swap_out' }>

/** The decision as it is enacted under that number. */
export function withOtherVictim(c: Cluster, entry: LiveEntry, decision: SwapOut, number: number): SwapOut {
  const hand = c.swapHand
  if (hand === null) return decision
  const other =
    hand.other?.decision === number ? chooseWithVictim(decision.shortages, hand.other.victim) : null
  const { choice, shortages } = other === null ? decision : { ...decision, choice: other }
  hand.onChoice({
    decision: number,
    taskId: entry.task.spec.id,
    nodeId: entry.node.id,
    victimIds: choice.victims.map(({ id }) => id),
    candidateIds: [...new Set(shortages.flatMap(({ candidates }) => candidates.map(({ id }) => id)))],
  })
  return { ...decision, choice }
}
