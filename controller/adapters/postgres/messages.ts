/** Requests to the writer's thread, besides those of every store. */
import type { WriterAnswers, WriterRequest } from '../sql/messages.ts'
import type { Term, TermEnd } from '../../ports/leadership.ts'
import type { StoreHost } from './store-url.ts'

export type PostgresRequest =
  | WriterRequest
  | { readonly op: 'host' }
  | { readonly op: 'term' }
  | { readonly op: 'holder' }
  | { readonly op: 'serves'; readonly seal: string }
  | { readonly op: 'resign'; readonly to: string | null }

export interface PostgresAnswers extends WriterAnswers {
  /** The one that accepts writes. */
  readonly host: StoreHost
  /** Null: it is not a candidate. */
  readonly term: Term | null
  /** Names this opening in the fence. */
  readonly holder: string
  readonly serves: null
  readonly resign: null
}

/** Messages that the thread sends without a request. */
export type PostgresNote =
  /** Why it waits for the server. */
  | { readonly k: 'waiting'; readonly why: string }
  /** Null: no controller leads. */
  | { readonly k: 'leader'; readonly leader: LeaderSeen | null }
  | { readonly k: 'lost'; readonly end: TermEnd }
  /** The database has accepted a beat. */
  | { readonly k: 'beat' }
  /** An operator asks the leader to resign. */
  | { readonly k: 'asked'; readonly to: string | null }

export interface LeaderSeen {
  readonly name: string
  /** Empty while its term has begun and it does not answer yet. */
  readonly url: string
  /** Its URL, sealed with the key of the controllers: access to the database is not enough to change it. */
  readonly seal: string
  readonly epoch: number
}
