/**
 * A simulation's hand in a swap decision: who could have left, and one decision that is to take somebody
 * else. Off unless a simulation sets it.
 */
import { chooseWithVictim } from '../../swap/chosen-victim.ts'
import type { EntryDecision } from '../../swap/swap.ts'
import type { Cluster } from '../cluster.ts'
import type { LiveEntry } from '../live.ts'

export interface VictimOverride {
  /** The decision of that number takes this task, if it may leave then. */
  readonly override: { readonly decision: number; readonly victim: string } | null
  readonly onChoice: (seen: ObservedChoice) => void
}

export interface ObservedChoice {
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
export function withVictimOverride(c: Cluster, entry: LiveEntry, decision: SwapOut, number: number): SwapOut {
  const victimOverride = c.victimOverride
  if (victimOverride === null) return decision
  const other =
    victimOverride.override?.decision === number
      ? chooseWithVictim(decision.shortages, victimOverride.override.victim)
      : null
  const { choice, shortages } = other === null ? decision : { ...decision, choice: other }
  victimOverride.onChoice({
    decision: number,
    taskId: entry.task.spec.id,
    nodeId: entry.node.id,
    victimIds: choice.victims.map(({ id }) => id),
    candidateIds: [...new Set(shortages.flatMap(({ candidates }) => candidates.map(({ id }) => id)))],
  })
  return { ...decision, choice }
}
