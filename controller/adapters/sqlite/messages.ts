/** Settings of the store's two worker threads, and requests to the reader. Rows only, no records. */
import type {
  AuditQuery,
  DecisionQuery,
  EventQuery,
  EventRange,
  FinishedQuery,
  RevisionQuery,
} from '../../ports/store.ts'
import type { StoreKind } from '../../model/store-kind.ts'
import type { DecisionRetention, EventRetention } from '../sql/pruning.ts'
import type { ConfigRow, EventRow, StoredRows } from '../sql/rows.ts'

/** The `workerData` of both threads. */
export interface WorkerSettings {
  readonly path: string
  readonly busyTimeoutMs: number
  readonly retention: EventRetention
  readonly decisionRetention: DecisionRetention
  readonly maxPages: number | null
  /** A missing store must not be created. */
  readonly isStoreExpected: boolean
  /** Text of the mark that the store need not reach (store-mark.ts); null: nothing may be missing. */
  readonly acceptLoss: string | null
  /** The required kind of the store; null: any. */
  readonly kind: StoreKind | null
}

/** Requests to the reader's thread. */
export type ReaderRequest =
  | { readonly op: 'load' }
  | { readonly op: 'task'; readonly id: string }
  | { readonly op: 'finishedTasks'; readonly query: FinishedQuery }
  | { readonly op: 'events'; readonly query: EventQuery }
  | { readonly op: 'eventRange' }
  | { readonly op: 'decision'; readonly number: number }
  | { readonly op: 'decisions'; readonly query: DecisionQuery }
  | { readonly op: 'audits'; readonly query: AuditQuery }
  | { readonly op: 'configRevisions'; readonly query: RevisionQuery }

/** Answers to requests. */
export interface Answers {
  readonly load: StoredRows
  readonly task: string | null
  readonly finishedTasks: readonly string[]
  readonly events: readonly EventRow[]
  readonly eventRange: EventRange
  readonly decision: string | null
  readonly decisions: readonly string[]
  readonly configRevisions: readonly ConfigRow[]
  readonly audits: readonly string[]
}
