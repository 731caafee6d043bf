/**
 * The clock of each node as last sampled: commands rely on it, because they expire by the node's own clock
 * (R3).
 */
import type { Boot } from '../../protocol/message-fields.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'

/**
 * A command is valid for this long after the heartbeat it relies on was sent, and never longer than the run
 * lease.
 */
const COMMAND_TTL_MS: DurationMs = 15_000

/** When the node sent its last authentic message, by its own clock, and when the message arrived. */
export interface ClockSample {
  boot: Boot
  sentMono: number
  receivedAt: Instant
}

export class Freshness {
  readonly #samples = new Map<string, ClockSample>()
  readonly #isElided: boolean

  /**
   * @param isElided heartbeats that change nothing are elided: between faults the last one counts as just
   * received
   */
  constructor(isElided: boolean) {
    this.#isElided = isElided
  }

  /** Captures the last sample of each node. */
  capture(): readonly (readonly [nodeId: string, sample: Readonly<ClockSample>])[] {
    return [...this.#samples].map(([nodeId, sample]) => [nodeId, { ...sample }])
  }

  restore(samples: ReturnType<Freshness['capture']>): void {
    for (const [nodeId, sample] of samples) this.#samples.set(nodeId, { ...sample })
  }

  /** Among messages of one boot the last one sent counts, in any order of arrival. */
  heard(nodeId: string, boot: Boot, sentMono: number, now: Instant): void {
    const sample = this.#samples.get(nodeId)
    if (sample === undefined) this.#samples.set(nodeId, { boot, sentMono, receivedAt: now })
    else if (sample.boot.counter !== boot.counter || sentMono >= sample.sentMono) {
      sample.boot = boot
      sample.sentMono = sentMono
      sample.receivedAt = now
    }
  }

  /** Null for a node that was never heard. */
  sampleOf(nodeId: string): ClockSample | null {
    return this.#samples.get(nodeId) ?? null
  }

  /** Returns the boot and expiry that a command to this node must carry. */
  commandLimits(
    sample: ClockSample,
    runLeaseMs: DurationMs,
    now: Instant,
  ): { boot: Boot; validUntilMono: number } {
    const sentMono = this.#isElided ? sample.sentMono + (now - sample.receivedAt) : sample.sentMono
    return { boot: sample.boot, validUntilMono: sentMono + Math.min(COMMAND_TTL_MS, runLeaseMs) }
  }
}
