/** Events that must arrive: kept and resent, oldest first, until the controller has them durably (R1, R8). */
import type { NodeEvent } from '../../protocol/messages.ts'

/** At most so many entries travel in one message. */
export const OUTBOX_CHUNK = 256

type WithoutNumber<T> = T extends unknown ? Omit<T, 'n'> : never
export type Outgoing = WithoutNumber<NodeEvent>

export class Outbox {
  #entries: NodeEvent[] = []
  #next = 1

  get isEmpty(): boolean {
    return this.#entries.length === 0
  }

  add(event: Outgoing): void {
    this.#entries.push({ n: this.#next++, ...event } as NodeEvent)
  }

  /** The oldest entries, at most a message full. */
  head(): readonly NodeEvent[] {
    return this.#entries.length <= OUTBOX_CHUNK ? this.#entries.slice() : this.#entries.slice(0, OUTBOX_CHUNK)
  }

  /** Everything up to `n` is durable at the controller; answers what that was. */
  acknowledge(n: number): readonly NodeEvent[] {
    let count = 0
    while (count < this.#entries.length && (this.#entries[count] as NodeEvent).n <= n) count += 1
    return this.#entries.splice(0, count)
  }

  entries(): readonly NodeEvent[] {
    return this.#entries
  }
}
