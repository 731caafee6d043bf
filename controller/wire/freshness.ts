/**
 * The clock of each node as last sampled: commands rely on it, because they expire by the node's own clock
 * (R3).
 */
import type { Boot } from '../../protocol/messages.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { ClockSample } from '../state/node-contact.ts'

/**
 * A command is valid for this long after the heartbeat it relies on was sent, and never longer than the run
 * lease.
 */
export const COMMAND_TTL_MS: DurationMs = 15_000

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

  /** @returns the node's clock sample: one object per node, which frequent callers may keep */
  heard(nodeId: string, boot: Boot, sentMono: number, now: Instant): ClockSample {
    let sample = this.#samples.get(nodeId)
    if (sample === undefined) this.#samples.set(nodeId, (sample = { boot, sentMono, receivedAt: now }))
    else updateClockSample(sample, boot, sentMono, now)
    return sample
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

/** Among messages of one boot the last one sent counts, in any order of arrival. */
export function updateClockSample(sample: ClockSample, boot: Boot, sentMono: number, now: Instant): void {
  if (sample.boot.counter === boot.counter && sentMono < sample.sentMono) return
  sample.boot = boot
  sample.sentMono = sentMono
  sample.receivedAt = now
}
