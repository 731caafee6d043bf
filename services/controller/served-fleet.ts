import type { ReadinessCheck } from '../../controller/api/context.ts'
import type { Controller } from '../../controller/controller.ts'

/** A running controller, and the fleet that it manages. */
export interface ServedFleet {
  readonly controller: Controller
  readonly kind: 'live' | 'simulated'
  /** The fleet, for the line at the start. */
  readonly describe: string
  /** Messages that the bus dropped, by reason. */
  readonly dropped: ReadonlyMap<string, number>
  /** Checks for /readyz in addition to the store. */
  readonly readiness: () => readonly ReadinessCheck[]
  /** Also closes the store. */
  stop(): Promise<void>
}
