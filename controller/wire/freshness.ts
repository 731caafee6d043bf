/**
 * How fresh each node's word is: what a command may rely on (R3: it dies on the node's own clock), and when silence makes a node suspect.
 */
import type { Boot } from '../../protocol/messages.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'

/** A command is valid for so long after the heartbeat it leans on was sent. */
export const COMMAND_TTL_MS: DurationMs = 15_000
/** After so much silence a node takes no new placements. */
export const SUSPECT_AFTER_MS: DurationMs = 15_000

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

  heard(nodeId: string, boot: Boot, sentMono: number, now: Instant): void {
    const word = this.#words.get(nodeId)
    if (word === undefined) this.#words.set(nodeId, { boot, sentMono, receivedAt: now })
    else {
      word.boot = boot
      word.sentMono = sentMono
      word.receivedAt = now
    }
  }

  /** What a command to the node must carry; null for a node that never spoke. */
  commandLimits(nodeId: string, now: Instant): { boot: Boot; validUntilMono: number } | null {
    const word = this.#words.get(nodeId)
    if (word === undefined) return null
    const sentMono = this.#isElided ? word.sentMono + (now - word.receivedAt) : word.sentMono
    return { boot: word.boot, validUntilMono: sentMono + COMMAND_TTL_MS }
  }

  isSilent(nodeId: string, now: Instant): boolean {
    if (this.#isElided) return false
    const word = this.#words.get(nodeId)
    return word === undefined || now - word.receivedAt > SUSPECT_AFTER_MS
  }
}
