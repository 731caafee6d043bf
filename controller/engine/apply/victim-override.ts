/** Lets a simulation observe swap decisions and replace one victim. Null outside such simulations. */
import { chooseWithVictim } from '../../policy/swap/chosen-victim.ts'
import type { EntryDecision } from '../../policy/swap/swap.ts'
import type { Cluster } from '../../state/cluster.ts'
import type { LiveEntry } from '../../state/facts.ts'

export interface VictimOverride {
  /** In the decision with this number this task leaves, if it is a candidate. */
  readonly override: { readonly decision: number; readonly victim: string } | null
  readonly onChoice: (seen: ObservedChoice) => void
}

export interface ObservedChoice {
  readonly decision: number
  /** The task that needed the VRAM. */
  readonly taskId: string
  readonly nodeId: string
  readonly victimIds: readonly string[]
  /** All candidates, in the order of the GPUs that are short. */
  readonly candidateIds: readonly string[]
}

type SwapOut = Extract<EntryDecision, { kind: 'swap_out' }>

/** Returns the decision to carry out under this number. */
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
