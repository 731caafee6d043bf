/** The `workerData` of the writer's thread. */
import type { StoreKind } from '../../model/store-kind.ts'
import type { Retentions } from './commit-plan.ts'
import type { StorePlace } from './store-url.ts'

export interface PostgresSettings extends Retentions {
  readonly place: StorePlace
  /** The file of the mark is this path with `.mark`. */
  readonly markBase: string
  readonly leaseMs: number
  /** How long to wait for a controller that is ending. */
  readonly lockWaitMs: number
  /** An unreachable server is waited for; otherwise it is a fault. */
  readonly waits: boolean
  /** A missing store must not be created. */
  readonly isStoreExpected: boolean
  /** Text of the mark that the store need not reach; null: nothing may be missing. */
  readonly acceptLoss: string | null
  /** The required kind of the store; null: any. */
  readonly kind: StoreKind | null
}
