import type { VictimClass } from './order.ts'

/** A task's mark on one GPU in one class. */
export interface SwapMark {
  /**
   * The round in which it was last swapped out for this GPU. It counts as swapped while that is the current
   * one.
   */
  readonly round: number
  /** Number of the decision that did it, null when none did. */
  readonly lastSwapOut: number | null
}

/**
 * The round of one class on one GPU: a number that only grows, and the marks of the tasks it has swapped out.
 */
export interface ClassRound {
  round: number
  readonly marks: Map<string, SwapMark>
}

export type GpuRounds = Readonly<Record<VictimClass, ClassRound>>

/** The part of a choice that rounds are made of: each victim with the GPU whose shortage chose it. */
export interface RoundChoice {
  readonly victims: readonly { readonly id: string; readonly gpu: number; readonly class: VictimClass }[]
  readonly closedRounds: readonly { readonly gpu: number; readonly class: VictimClass }[]
}

/** What a newcomer has: not swapped, and the oldest of all. */
const NEVER_SWAPPED: SwapMark = { round: -1, lastSwapOut: null }

export function newGpuRounds(): GpuRounds {
  return { non_p0: { round: 0, marks: new Map() }, p0: { round: 0, marks: new Map() } }
}

/** `markOf(state, id).round === state.round` says whether the task counts as swapped in this round. */
export function markOf(state: ClassRound, taskId: string): SwapMark {
  return state.marks.get(taskId) ?? NEVER_SWAPPED
}

/**
 * Enters an enacted choice into the books of one node's GPUs, by GPU index; the only place that changes them
 * (design/semantics.md 5, choice 5).
 *
 * Victims are marked on the GPU whose shortage chose them, and nowhere else. One not yet swapped gets the
 * current round's mark. One that was already swapped closes the round: the number goes up by one, which makes
 * everyone fresh at once, and it alone gets the new number. The other victims of that decision stay marked in
 * the old round, so they are fresh in the new one.
 *
 * So a task is counted at most once in each round, and exactly once in each that closes while it is eligible,
 * because the one that closes it takes everyone still fresh. That is the fairness bound: 1 from the start of
 * a round, 2 in any window. Who was already chosen for an earlier GPU of that decision is no candidate on
 * this one, and is not compared there (test/property/swap-fairness.test.ts).
 */
export function enactRound(gpus: readonly GpuRounds[], choice: RoundChoice, decision: number): void {
  for (const victim of choice.victims) {
    const state = roundOf(gpus, victim.gpu, victim.class)
    const isSwapped = markOf(state, victim.id).round === state.round
    if (isSwapped && !closes(choice, victim.gpu, victim.class)) {
      throw new Error(
        `broken invariant: ${victim.id} was swapped twice in round ${state.round} of GPU ${victim.gpu}`,
      )
    }
    state.marks.set(victim.id, { round: isSwapped ? state.round + 1 : state.round, lastSwapOut: decision })
  }
  for (const closed of choice.closedRounds) roundOf(gpus, closed.gpu, closed.class).round += 1
}

/** Drops the marks of a task that will not come back to this GPU; should it, it is a newcomer. */
export function forgetTask(rounds: GpuRounds, taskId: string): void {
  rounds.non_p0.marks.delete(taskId)
  rounds.p0.marks.delete(taskId)
}

function closes(choice: RoundChoice, gpu: number, victimClass: VictimClass): boolean {
  return choice.closedRounds.some((closed) => closed.gpu === gpu && closed.class === victimClass)
}

function roundOf(gpus: readonly GpuRounds[], gpu: number, victimClass: VictimClass): ClassRound {
  const rounds = gpus[gpu]
  if (rounds === undefined) throw new Error(`broken invariant: no rounds are kept for GPU ${gpu}`)
  return rounds[victimClass]
}
