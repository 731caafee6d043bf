/**
 * Replaces one victim of a swap-out decision: it shows how the decision could have been different.
 * Simulations use it; the controller never decides so by itself.
 */
import type { Candidate } from './order.ts'
import type { ClosedRound, CoveredChoice, Shortage, Victim, VictimPolicy } from './victims.ts'
import { chooseVictims } from './victims.ts'

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

export function overridden({ override, onChoice }: VictimOverride): VictimPolicy {
  return ({ decision, taskId, nodeId, choice: byRules, shortages }) => {
    const other = override?.decision === decision ? chooseWithVictim(shortages, override.victim) : null
    const choice = other ?? byRules
    const candidateIds = shortages.flatMap(({ candidates }) => candidates.map(({ id }) => id))
    onChoice({
      decision,
      taskId,
      nodeId,
      victimIds: choice.victims.map(({ id }) => id),
      candidateIds: [...new Set(candidateIds)],
    })
    return choice
  }
}

/**
 * The given victim leaves for the first GPU, by index, on which it is a candidate; the rules cover the
 * remaining shortages with others. Null: it is not a candidate, or the shortages are not covered.
 */
export function chooseWithVictim(shortages: readonly Shortage[], victimId: string): CoveredChoice | null {
  const byIndex = [...shortages].sort((a, b) => a.gpu - b.gpu)
  const isGiven = (candidate: Candidate): boolean => candidate.id === victimId
  const first = byIndex.find(({ candidates }) => candidates.some(isGiven))
  const given = first?.candidates.find(isGiven)
  if (first === undefined || given === undefined) return null
  const rest = byIndex
    .map((shortage) => withoutGiven(shortage, victimId))
    .filter(({ missingMib }) => missingMib > 0)
  const choice = chooseVictims(rest)
  if (!choice.covered) return null
  const place = { id: victimId, gpu: first.gpu, class: given.class }
  const victim: Victim = { ...place, rule: 'oldest_then_fewest_bytes' }
  const closes = (closed: ClosedRound): boolean => closed.gpu === victim.gpu && closed.class === victim.class
  const isClosing = given.isSwappedThisRound && !choice.closedRounds.some(closes)
  return {
    covered: true,
    victims: [victim, ...choice.victims],
    closedRounds: isClosing
      ? [{ gpu: victim.gpu, class: victim.class }, ...choice.closedRounds]
      : choice.closedRounds,
  }
}

/** The remaining shortage and candidates without the given victim. */
function withoutGiven({ gpu, missingMib, candidates }: Shortage, victimId: string): Shortage {
  const given = candidates.find(({ id }) => id === victimId)
  return {
    gpu,
    missingMib: missingMib - (given?.mib ?? 0),
    candidates: candidates.filter(({ id }) => id !== victimId),
  }
}
