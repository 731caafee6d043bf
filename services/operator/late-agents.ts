import type { CancelTimer, Clock } from '../../controller/ports/clock.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'

/** The agents of a cluster find a new leader, or get a new setting, one after the other. */
const QUIET_MS: DurationMs = 5_000
/** From the first one. */
const WITHIN_MS: DurationMs = 30_000

/** Nodes whose agents have other host memory than the term knows: one new term takes up many of them. */
export class LateAgents {
  readonly #clock: Clock
  readonly #onDue: (why: string) => void
  #since: Instant | null = null
  /** Names of the nodes. */
  #known = ''
  #cancel: CancelTimer = () => {}

  constructor(clock: Clock, onDue: (why: string) => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /** @param names all of these nodes */
  take(names: readonly string[]): void {
    const known = names.join()
    if (known === this.#known) return
    this.#known = known
    this.#cancel()
    this.#since = names.length === 0 ? null : (this.#since ?? this.#clock.now())
    if (this.#since === null) return
    const due = Math.min(this.#clock.now() + QUIET_MS, this.#since + WITHIN_MS)
    const which = names.length === 1 ? 'agent of node' : 'agents of nodes'
    this.#cancel = this.#clock.at(due, () =>
      this.#onDue(`the host memory of the ${which} ${names.join(', ')} has changed`),
    )
  }
}
