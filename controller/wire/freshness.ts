/**
 * How fresh each node's word is: what a command may rely on, because it dies on the node's own clock (R3).
 */
import type { Boot } from '../../protocol/messages.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { ClockSample } from '../engine/node/node-contact.ts'

/**
 * A command is valid for so long after the heartbeat it leans on was sent, and never longer than the run
 * lease.
 */
export const COMMAND_TTL_MS: DurationMs = 15_000

export class Freshness {
  readonly #samples = new Map<string, ClockSample>()
  readonly #isElided: boolean

  /**
   * @param isElided heartbeats that change nothing are not enacted: between faults the last one counts as
   *   just received.
   */
  constructor(isElided: boolean) {
    this.#isElided = isElided
  }

  /** The last word of each node, for a written memory. */
  capture(): readonly (readonly [nodeId: string, sample: Readonly<ClockSample>])[] {
    return [...this.#samples].map(([nodeId, sample]) => [nodeId, { ...sample }])
  }

  restore(samples: ReturnType<Freshness['capture']>): void {
    for (const [nodeId, sample] of samples) this.#samples.set(nodeId, { ...sample })
  }

  /**
   * @returns the node's word: one object for as long as this lives, for whoever hears from or speaks to the
   *   node often
   */
  heard(nodeId: string, boot: Boot, sentMono: number, now: Instant): ClockSample {
    let sample = this.#samples.get(nodeId)
    if (sample === undefined) this.#samples.set(nodeId, (sample = { boot, sentMono, receivedAt: now }))
    else updateClockSample(sample, boot, sentMono, now)
    return sample
  }

  /** Null of a node that never spoke. */
  sampleOf(nodeId: string): ClockSample | null {
    return this.#samples.get(nodeId) ?? null
  }

  /** What a command to the node of this word must carry. */
  commandLimits(
    sample: ClockSample,
    runLeaseMs: DurationMs,
    now: Instant,
  ): { boot: Boot; validUntilMono: number } {
    const sentMono = this.#isElided ? sample.sentMono + (now - sample.receivedAt) : sample.sentMono
    return { boot: sample.boot, validUntilMono: sentMono + Math.min(COMMAND_TTL_MS, runLeaseMs) }
  }
}

/** Of messages of one boot the one that was sent last counts, in whatever order they arrive. */
export function updateClockSample(sample: ClockSample, boot: Boot, sentMono: number, now: Instant): void {
  if (sample.boot.counter === boot.counter && sentMono < sample.sentMono) return
  sample.boot = boot
  sample.sentMono = sentMono
  sample.receivedAt = now
}
