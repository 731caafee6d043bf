/** Events as they come: asked for again and again from the last seen seq on. */
import type { EventBody, EventPage } from '../../controller/api/schema/event.ts'
import { ConnectionError } from './errors.ts'
import { backoffMs, pause, type Transport } from './transport.ts'

export interface EventFilter {
  /** Only of this task. */
  readonly task?: string
  /** Only of this node. */
  readonly node?: string
  /** Only of this kind, or of these, separated by commas. */
  readonly kind?: string
}

export interface EventsQuery extends EventFilter {
  /** Only events with a higher seq. */
  readonly after?: number
  /** Only events with a lower seq. */
  readonly before?: number
  /** Which come first (oldest). */
  readonly order?: 'oldest' | 'newest'
  /** From this time on, and before that one, in UTC (2026-01-31T08:00:00Z). */
  readonly since?: string
  readonly until?: string
  readonly limit?: number
}

export interface FollowEventsOptions extends EventFilter {
  /** Only events with a higher seq. */
  readonly after: number
  readonly signal: AbortSignal
  /** Hears of a connection that broke; it is made again. */
  readonly onInterrupted?: (error: ConnectionError) => void
}

const PAGE = 200
const ASK_EVERY_MS = 500
const MAX_PAUSE_MS = 5_000

/** Never ends by itself; returns when the signal aborts. What the controller refuses is thrown. */
export async function* followEvents(
  transport: Transport,
  { after: from, signal, onInterrupted, ...filter }: FollowEventsOptions,
): AsyncGenerator<EventBody, void, undefined> {
  let after = from
  let failures = 0
  try {
    while (!signal.aborted) {
      let waitMs = 0
      try {
        const page = await transport.json<EventPage>({ method: 'GET', path: '/events', query: { ...filter, after, limit: PAGE }, signal })
        yield* page.items
        after = page.next_after
        failures = 0
        waitMs = page.items.length < PAGE ? ASK_EVERY_MS : 0
      } catch (error) {
        if (!(error instanceof ConnectionError)) throw error
        failures += 1
        if (failures === 1) onInterrupted?.(error)
        waitMs = backoffMs(failures, MAX_PAUSE_MS)
      }
      if (waitMs > 0) await pause(waitMs, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
