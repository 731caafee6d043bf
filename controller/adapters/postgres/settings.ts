/** The `workerData` of the writer's thread. */
import type { StoreKind } from '../../model/store-kind.ts'
import type { Retentions } from './commit-plan.ts'
import type { StorePlace } from './store-url.ts'

/** Key for secrets and environment variables: the same at all controllers of a store. */
export interface CandidateKey {
  readonly path: string
  readonly id: string
  /** Replaces the key of the other controllers. */
  readonly isNew: boolean
}

/** A controller that is one of several on the store. */
export interface Candidate {
  readonly name: string
  /** Address for the other controllers. */
  readonly url: string
  readonly mayLead: boolean
  readonly version: string
  readonly key: CandidateKey
}

export interface PostgresSettings extends Retentions {
  readonly place: StorePlace
  /** The file of the mark is this path with `.mark`. */
  readonly markBase: string
  readonly leaseMs: number
  /** It waits until it leads; null: another controller is a fault. */
  readonly candidate: Candidate | null
  /** Progress of the main thread (shared-progress.ts); null: the main thread always counts as alive. */
  readonly progress: SharedArrayBuffer | null
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
