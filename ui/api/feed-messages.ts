/** Messages between the shared worker and the pages. */
import type { EventBody } from '../../controller/api/observe/event-schema.ts'
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'

export type ToFeed =
  | { readonly kind: 'hello'; readonly apiBase: string; readonly token: string | null }
  | { readonly kind: 'here' }
  | { readonly kind: 'bye' }

export type FromFeed =
  | { readonly kind: 'summary'; readonly summary: SummaryBody; readonly at: number }
  | { readonly kind: 'events'; readonly events: readonly EventBody[]; readonly at: number }
  /** The stream restarted after a gap: all displayed data must be read again. */
  | { readonly kind: 'gap' }
  | { readonly kind: 'status'; readonly status: FeedStatus }

/** `refused`: the controller requires authentication. */
export type FeedStatus = 'connecting' | 'live' | 'reconnecting' | 'refused'
