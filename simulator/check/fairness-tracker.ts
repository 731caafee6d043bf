/**
 * The fairness bound (semantics 5) on one GPU and class, decision by decision. The swap-out counts of two
 * tasks differ by at most 2 over any window, and by at most 1 from the start of a round, if both were
 * eligible at every round closing of the window and not yet chosen for an earlier GPU of the decision. A
 * round starts with the already-swapped victims of the decision that closes the round before. For each pair,
 * the tracker keeps the range of the difference of their counts over the current run of decisions; a run ends
 * at a closing at which not both were available. Every window of the run is the difference of two of its
 * points, so the result equals that of trying all windows.
 */

const BOUND_IN_ANY_WINDOW = 2
const BOUND_FROM_ROUND_START = 1

/** One decision on this GPU and class. */
export interface FairnessStep {
  /** Victims chosen for the shortfall of this GPU. */
  readonly victims: readonly string[]
  /** Tasks eligible for this decision and not chosen for an earlier GPU of it. */
  readonly available: ReadonlySet<string>
}

export interface FairnessBreach {
  readonly ids: readonly [string, string]
  readonly difference: number
  readonly bound: number
}

interface Member {
  readonly id: string
  /** Swap-outs since it joined. */
  count: number
  /** The same count at the start of the round, and right after the decision that started it. */
  atRoundStart: number
  atLastClosing: number
  /** It was swapped out in the current round. */
  isSwapped: boolean
  /** Pairs with the members that joined earlier. */
  readonly pairs: Map<Member, PairRun>
}

/** Ranges of the difference of two counts, the later member's first. */
interface PairRun {
  least: number
  most: number
  leastAtStart: number
  mostAtStart: number
}

export class FairnessTracker {
  readonly #members = new Map<string, Member>()

  /** Returns whether the victim closes the round: it was already swapped out in it. */
  isSwappedThisRound(id: string): boolean {
    return this.#members.get(id)?.isSwapped ?? false
  }

  /**
   * The task has bytes here from now on: it is new, or was swapped out in this round before the tracker knew
   * it.
   */
  join(id: string, isSwapped = false): void {
    if (this.#members.has(id)) return
    const member: Member = { id, count: 0, atRoundStart: 0, atLastClosing: 0, isSwapped, pairs: new Map() }
    for (const other of this.#members.values()) {
      const atStart = -other.atRoundStart
      const run = {
        least: -other.count,
        most: -other.atLastClosing,
        leastAtStart: atStart,
        mostAtStart: atStart,
      }
      member.pairs.set(other, run)
    }
    this.#members.set(id, member)
  }

  leave(id: string): void {
    const member = this.#members.get(id)
    if (member === undefined) return
    this.#members.delete(id)
    for (const other of this.#members.values()) other.pairs.delete(member)
  }

  /** Enters a decision; returns the first pair that it takes beyond the bound. */
  decide({ victims, available }: FairnessStep): FairnessBreach | null {
    for (const id of [...victims, ...available]) this.join(id)
    const members = victims.map((id) => this.#members.get(id) as Member)
    const swapped = members.filter((member) => member.isSwapped)
    for (const member of members)
      if (!member.isSwapped) [member.count, member.isSwapped] = [member.count + 1, true]
    const isClosing = swapped.length > 0
    if (isClosing) this.#beginRound(available)
    for (const member of swapped) [member.count, member.isSwapped] = [member.count + 1, true]
    if (isClosing) for (const member of this.#members.values()) member.atLastClosing = member.count
    return this.#look(isClosing ? available : null)
  }

  #beginRound(available: ReadonlySet<string>): void {
    for (const member of this.#members.values()) {
      member.isSwapped = false
      member.atRoundStart = member.count
      for (const [other, run] of member.pairs) {
        const difference = member.count - other.count
        const goesOn = available.has(member.id) && available.has(other.id)
        run.leastAtStart = goesOn ? Math.min(run.leastAtStart, difference) : difference
        run.mostAtStart = goesOn ? Math.max(run.mostAtStart, difference) : difference
      }
    }
  }

  /**
   * @param atClosing the tasks available at the closing that this decision is; null if it is not a closing
   */
  #look(atClosing: ReadonlySet<string> | null): FairnessBreach | null {
    let breach: FairnessBreach | null = null
    for (const member of this.#members.values()) {
      for (const [other, run] of member.pairs) {
        const difference = member.count - other.count
        const goesOn = atClosing === null || (atClosing.has(member.id) && atClosing.has(other.id))
        run.least = goesOn ? Math.min(run.least, difference) : difference
        run.most = goesOn ? Math.max(run.most, difference) : difference
        const inWindow = run.most - run.least
        const fromStart = Math.max(difference - run.leastAtStart, run.mostAtStart - difference)
        const ids = [other.id, member.id] as const
        if (inWindow > BOUND_IN_ANY_WINDOW)
          breach ??= { ids, difference: inWindow, bound: BOUND_IN_ANY_WINDOW }
        else if (fromStart > BOUND_FROM_ROUND_START)
          breach ??= { ids, difference: fromStart, bound: BOUND_FROM_ROUND_START }
      }
    }
    return breach
  }
}
