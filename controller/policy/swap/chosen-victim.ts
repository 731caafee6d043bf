/**
 * A choice with one given victim; the rules choose the rest. It shows how a decision could have been
 * different; the controller never decides so by itself.
 */
import type { Candidate } from './order.ts'
import { classOf } from './order.ts'
import type { ClosedRound, Shortage, Victim, VictimChoice } from './victims.ts'
import { chooseVictims } from './victims.ts'

/**
 * The given victim leaves for the first GPU, by index, on which it is a candidate; the rules cover the
 * remaining shortages with others. Null: it is no candidate, or the shortages are not covered.
 */
export function chooseWithVictim(
  shortages: readonly Shortage[],
  victimId: string,
): Extract<VictimChoice, { covered: true }> | null {
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
  const victim: Victim = { id: victimId, gpu: first.gpu, class: classOf(given) }
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
