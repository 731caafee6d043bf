/** The copies of one host: one transfer at a time on a GPU, and the host's shared link where there is one. */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import { HostLink } from './host-link.ts'

export class CopyEngines {
  /** Until when each GPU's is taken. */
  readonly #until: Instant[]
  readonly #hostLink: HostLink

  /** @param hostLinkMibPerS 1 or more; null: nothing is shared. */
  constructor(gpuCount: number, hostLinkMibPerS: number | null) {
    this.#until = Array.from({ length: gpuCount }, () => 0)
    this.#hostLink = new HostLink(hostLinkMibPerS)
  }

  /** When a copy from or to all these GPUs could begin. */
  freeAt(gpus: readonly number[], now: Instant): Instant {
    let at = now
    for (const gpu of gpus) at = Math.max(at, this.#until[gpu] as Instant)
    return at
  }

  /**
   * A task's bytes on all its GPUs move at once, each GPU's over its own link; the links are taken until
   * then.
   * @param mib on each GPU @param copyMs how long they take over one GPU's own link, beside `fixedMs`
   * @returns when the last byte has moved
   */
  take(gpus: readonly number[], now: Instant, mib: Mib, fixedMs: DurationMs, copyMs: DurationMs): Instant {
    const endsAt = this.#hostLink.pass(this.freeAt(gpus, now) + fixedMs, mib * gpus.length, copyMs)
    for (const gpu of gpus) this.#until[gpu] = endsAt
    return endsAt
  }
}
