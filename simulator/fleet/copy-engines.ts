/** The copies of one host: one transfer at a time per GPU, and the host's shared link if it is limited. */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import { HostLink } from './host-link.ts'

export class CopyEngines {
  /** End of the current transfer of each GPU. */
  readonly #until: Instant[]
  readonly #hostLink: HostLink

  /** @param hostLinkMibPerS 1 or more; null: no shared limit */
  constructor(gpuCount: number, hostLinkMibPerS: number | null) {
    this.#until = Array.from({ length: gpuCount }, () => 0)
    this.#hostLink = new HostLink(hostLinkMibPerS)
  }

  /** Returns when a copy from or to all these GPUs can begin. */
  freeAt(gpus: readonly number[], now: Instant): Instant {
    let at = now
    for (const gpu of gpus) at = Math.max(at, this.#until[gpu] as Instant)
    return at
  }

  /** A copy that is given up then keeps the links until then. */
  giveUpAt(gpus: readonly number[], at: Instant): void {
    for (const gpu of gpus) this.#until[gpu] = at
  }

  /**
   * Copies a task's bytes on all its GPUs at once, each over its GPU's own link; the links are busy until the
   * end.
   * @param mib on each GPU
   * @param copyMs duration over one GPU's own link, without `fixedMs`
   * @returns when the last byte has moved
   */
  take(gpus: readonly number[], now: Instant, mib: Mib, fixedMs: DurationMs, copyMs: DurationMs): Instant {
    const endsAt = this.#hostLink.pass(this.freeAt(gpus, now) + fixedMs, mib * gpus.length, copyMs)
    for (const gpu of gpus) this.#until[gpu] = endsAt
    return endsAt
  }
}
