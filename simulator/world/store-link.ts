/**
 * The way between the host of a controller and the store that several controllers share. A commit that is not
 * answered within the lease is given up: it is unknown whether it was written.
 */
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Store } from '../../controller/ports/store.ts'
import { StoreFault } from '../../controller/ports/store.ts'
import type { DurationMs } from '../../protocol/units.ts'

type Commit = Store['commit']

export class StoreLink {
  /** Number of faults that keep requests, and answers, from arriving. */
  #cuts = 0
  #mutes = 0
  #held: (() => void)[] = []

  get isCut(): boolean {
    return this.#cuts > 0
  }

  get isMute(): boolean {
    return this.#mutes > 0
  }

  cut(): void {
    this.#cuts += 1
  }

  /** Delivers the delayed writes in order. */
  mend(): void {
    this.#cuts -= 1
    if (this.#cuts > 0) return
    const held = this.#held
    this.#held = []
    for (const arrive of held) arrive()
  }

  mute(): void {
    this.#mutes += 1
  }

  /** Answers from before are lost. */
  unmute(): void {
    this.#mutes -= 1
  }

  /** Runs now, or when requests arrive again. */
  send(arrive: () => void): void {
    if (this.isCut) this.#held.push(arrive)
    else arrive()
  }
}

export interface LinkedCommits {
  readonly link: StoreLink
  readonly clock: Clock
  readonly leaseMs: DurationMs
  /** Runs once the process is not paused. */
  readonly whenRunning: (act: () => void) => void
  readonly onPromise: () => void
}

/** @param commit at the store */
export function commitsOver(commit: Commit, o: LinkedCommits): Commit {
  const { link, clock } = o
  return (batch) => {
    // A store that answers at once, as in a world without a second controller.
    const answer = link.isCut || link.isMute ? null : commit(batch)
    if (answer === undefined) return undefined
    return new Promise((resolve, reject) => {
      const tell = (act: () => void): void =>
        o.whenRunning(() => {
          o.onPromise()
          act()
        })
      const cancel = clock.at(clock.now() + o.leaseMs, () => tell(() => reject(gaveUp(o))), RANK_DEVICE)
      const settle = (act: () => void): void => {
        if (link.isMute) return
        cancel()
        tell(act)
      }
      const wait = (answered: Promise<void> | undefined): void => {
        if (answered === undefined) settle(resolve)
        else
          answered.then(
            () => settle(resolve),
            (fault: unknown) => settle(() => reject(fault as Error)),
          )
      }
      if (answer !== null) wait(answer)
      else link.send(() => wait(commit(batch)))
    })
  }
}

function gaveUp({ leaseMs }: LinkedCommits): StoreFault {
  return new StoreFault(
    `a commit was not answered within ${leaseMs} ms: it is not known whether it was written`,
  )
}
