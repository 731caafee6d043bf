/** How fresh each node's word is: what a command may rely on, because it dies on the node's own clock (R3). */
import type { Boot } from '../../protocol/messages.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'

/** A command is valid for so long after the heartbeat it leans on was sent, and never longer than the run lease. */
export const COMMAND_TTL_MS: DurationMs = 15_000

interface LastWord {
  boot: Boot
  sentMono: number
  receivedAt: Instant
}

export class Freshness {
  readonly #words = new Map<string, LastWord>()
  readonly #isElided: boolean

  /** @param isElided heartbeats that change nothing are not enacted: between faults the last one counts as just received. */
  constructor(isElided: boolean) {
    this.#isElided = isElided
  }

  /** The last word of each node, for a written memory. */
  note(): readonly (readonly [nodeId: string, word: Readonly<LastWord>])[] {
    return [...this.#words].map(([nodeId, word]) => [nodeId, { ...word }])
  }

  recall(words: ReturnType<Freshness['note']>): void {
    for (const [nodeId, word] of words) this.#words.set(nodeId, { ...word })
  }

  /** Of messages of one boot the one that was sent last counts, in whatever order they arrive. */
  heard(nodeId: string, boot: Boot, sentMono: number, now: Instant): void {
    const word = this.#words.get(nodeId)
    if (word === undefined) this.#words.set(nodeId, { boot, sentMono, receivedAt: now })
    else if (word.boot.counter !== boot.counter || sentMono >= word.sentMono) {
      word.boot = boot
      word.sentMono = sentMono
      word.receivedAt = now
    }
  }

  /** What a command to the node must carry; null for a node that never spoke. */
  commandLimits(nodeId: string, runLeaseMs: DurationMs, now: Instant): { boot: Boot; validUntilMono: number } | null {
    const word = this.#words.get(nodeId)
    if (word === undefined) return null
    const sentMono = this.#isElided ? word.sentMono + (now - word.receivedAt) : word.sentMono
    return { boot: word.boot, validUntilMono: sentMono + Math.min(COMMAND_TTL_MS, runLeaseMs) }
  }
}
