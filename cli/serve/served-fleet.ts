import type { ReadinessCheck } from '../../controller/api/context.ts'
import type { Controller } from '../../controller/controller.ts'

/** A controller that runs, and what it manages. */
export interface ServedFleet {
  readonly controller: Controller
  readonly kind: 'live' | 'simulated'
  /** What it manages, for the line at the start. */
  readonly describe: string
  /** Messages that the bus did not pass on, by reason. */
  readonly dropped: ReadonlyMap<string, number>
  /** What /readyz asks besides the store. */
  readonly readiness: () => readonly ReadinessCheck[]
  /** Closes the store too. */
  stop(): Promise<void>
}
