import { VICTIM_CLASSES, type VictimClass } from '../../model/victim-class.ts'

/** The mark of a task on one GPU in one class. */
export interface SwapMark {
  /**
   * The round in which it was last swapped out for this GPU. It counts as swapped while that round is
   * current.
   */
  readonly round: number
  /** Number of that decision; null if none. */
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

/** The part of a choice that rounds need: each victim with the GPU whose shortage chose it. */
export interface RoundChoice {
  readonly victims: readonly { readonly id: string; readonly gpu: number; readonly class: VictimClass }[]
  readonly closedRounds: readonly { readonly gpu: number; readonly class: VictimClass }[]
}

/** The mark of a new task: not swapped, and oldest of all. */
const NEVER_SWAPPED: SwapMark = { round: -1, lastSwapOut: null }

/** The keys of a GPU's classes in the fairness tracker. */
export function fairnessScopesOf(gpu: string): Readonly<Record<VictimClass, string>> {
  return {
    non_p0: `${gpu}/non_p0`,
    non_p0_warm: `${gpu}/non_p0_warm`,
    p0: `${gpu}/p0`,
    p0_warm: `${gpu}/p0_warm`,
  }
}

export function newGpuRounds(): GpuRounds {
  return { non_p0: newRound(), non_p0_warm: newRound(), p0: newRound(), p0_warm: newRound() }
}

function newRound(): ClassRound {
  return { round: 0, marks: new Map() }
}

/** `markOf(state, id).round === state.round` is true if the task counts as swapped in this round. */
export function markOf(state: ClassRound, taskId: string): SwapMark {
  return state.marks.get(taskId) ?? NEVER_SWAPPED
}

/**
 * Applies a choice to the rounds of one node's GPUs, by GPU index; the only place that changes them
 * (design/semantics.md 5, choice 5).
 *
 * Victims are marked on the GPU whose shortage chose them, and nowhere else. A victim not yet swapped gets
 * the current round's mark. A victim that was already swapped closes the round: the number increases by one,
 * which makes all tasks fresh at once, and only this victim gets the new number. The other victims of that
 * decision stay marked in the old round, so they are fresh in the new one.
 *
 * So a task is counted at most once in each round, and exactly once in each that closes while it is eligible,
 * because the decision that closes it takes all tasks that are still fresh. That is the fairness bound: 1
 * from the start of a round, 2 in any window. A task already chosen for an earlier GPU of that decision is no
 * candidate on this one, and is not compared there (test/property/swap-fairness.test.ts).
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

/** Drops the marks of a task that will not return to this GPU; if it does, it counts as new. */
export function forgetTask(rounds: GpuRounds, taskId: string): void {
  for (const victimClass of VICTIM_CLASSES) {
    const { marks } = rounds[victimClass]
    if (marks.size > 0) marks.delete(taskId)
  }
}

function closes(choice: RoundChoice, gpu: number, victimClass: VictimClass): boolean {
  return choice.closedRounds.some((closed) => closed.gpu === gpu && closed.class === victimClass)
}

function roundOf(gpus: readonly GpuRounds[], gpu: number, victimClass: VictimClass): ClassRound {
  const rounds = gpus[gpu]
  if (rounds === undefined) throw new Error(`broken invariant: no rounds are kept for GPU ${gpu}`)
  return rounds[victimClass]
}
