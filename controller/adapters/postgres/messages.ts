/** Requests to the writer's thread, besides those of every store. */
import type { WriterAnswers, WriterRequest } from '../sql/messages.ts'
import type { StoreHost } from './store-url.ts'

export type PostgresRequest = WriterRequest | { readonly op: 'host' }

export interface PostgresAnswers extends WriterAnswers {
  /** The one that accepts writes. */
  readonly host: StoreHost
}
