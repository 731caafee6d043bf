/**
 * How fresh each node's word is: what a command may rely on, because it dies on the node's own clock (R3).
 */
import type { Boot } from '../../protocol/messages.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { SentWord } from '../engine/node/node-word.ts'

/**
 * A command is valid for so long after the heartbeat it leans on was sent, and never longer than the run
 * lease.
 */
export const COMMAND_TTL_MS: DurationMs = 15_000

export class Freshness {
  readonly #words = new Map<string, SentWord>()
  readonly #isElided: boolean

  /**
   * @param isElided heartbeats that change nothing are not enacted: between faults the last one counts as
   *   just received.
   */
  constructor(isElided: boolean) {
    this.#isElided = isElided
  }

  /** The last word of each node, for a written memory. */
  note(): readonly (readonly [nodeId: string, word: Readonly<SentWord>])[] {
    return [...this.#words].map(([nodeId, word]) => [nodeId, { ...word }])
  }

  recall(words: ReturnType<Freshness['note']>): void {
    for (const [nodeId, word] of words) this.#words.set(nodeId, { ...word })
  }

  /**
   * @returns the node's word: one object for as long as this lives, for whoever hears from or speaks to the
   *   node often
   */
  heard(nodeId: string, boot: Boot, sentMono: number, now: Instant): SentWord {
    let word = this.#words.get(nodeId)
    if (word === undefined) this.#words.set(nodeId, (word = { boot, sentMono, receivedAt: now }))
    else renewWord(word, boot, sentMono, now)
    return word
  }

  /** Null of a node that never spoke. */
  wordOf(nodeId: string): SentWord | null {
    return this.#words.get(nodeId) ?? null
  }

  /** What a command to the node of this word must carry. */
  commandLimits(
    word: SentWord,
    runLeaseMs: DurationMs,
    now: Instant,
  ): { boot: Boot; validUntilMono: number } {
    const sentMono = this.#isElided ? word.sentMono + (now - word.receivedAt) : word.sentMono
    return { boot: word.boot, validUntilMono: sentMono + Math.min(COMMAND_TTL_MS, runLeaseMs) }
  }
}

/** Of messages of one boot the one that was sent last counts, in whatever order they arrive. */
export function renewWord(word: SentWord, boot: Boot, sentMono: number, now: Instant): void {
  if (word.boot.counter === boot.counter && sentMono < word.sentMono) return
  word.boot = boot
  word.sentMono = sentMono
  word.receivedAt = now
}
