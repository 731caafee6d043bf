/** Follows events: one stream, resumed after the last event when the connection breaks. */
import type { EventBody } from '../../controller/api/observe/event-schema.ts'
import { ConnectionError, isPassing } from './errors.ts'
import { openStream } from './event-stream.ts'
import { backoffMs, pause, type Transport } from './transport.ts'

export interface EventFilter {
  /** Only of this task. */
  readonly task?: string
  /** Only of this node. */
  readonly node?: string
  /** Only of this kind, or of several kinds separated by commas. */
  readonly kind?: string
}

export interface EventsQuery extends EventFilter {
  /** Only events with a higher seq. */
  readonly after?: number
  /** Only events with a lower seq. */
  readonly before?: number
  /** Sort order (oldest). */
  readonly order?: 'oldest' | 'newest'
  /** Range of time in UTC, start included, end excluded (2026-01-31T08:00:00Z). */
  readonly since?: string
  readonly until?: string
  readonly limit?: number
}

export interface FollowEventsOptions extends EventFilter {
  /** Only events with a higher seq. */
  readonly after: number
  readonly signal: AbortSignal
  /** Called once for each broken connection, before it is reopened. */
  readonly onInterrupted?: (error: Error) => void
}

const MAX_PAUSE_MS = 5_000

/**
 * Never ends by itself; returns when the signal aborts. Throws what the controller refuses permanently:
 * ApiError `events_gone` when the next events are no longer stored.
 */
export async function* followEvents(
  transport: Transport,
  { after: from, signal, onInterrupted, ...query }: FollowEventsOptions,
): AsyncGenerator<EventBody, void, undefined> {
  let after = from
  const onId = (id: string): void => void (after = Math.max(after, Number(id)))
  for (let failures = 0; !signal.aborted;) {
    try {
      for await (const { event, data } of openStream(transport, {
        path: '/events/stream',
        query: { ...query },
        from: after,
        subject: 'events',
        signal,
        onId,
      })) {
        failures = 0
        if (event !== 'event') continue
        const parsed = JSON.parse(data) as EventBody
        yield parsed
        after = parsed.seq
      }
      throw new ConnectionError(`the connection to ${transport.url} ended`, false)
    } catch (error) {
      if (signal.aborted) return
      if (!isPassing(error)) throw error
      failures += 1
      if (failures === 1) onInterrupted?.(error)
      await pause(backoffMs(failures, MAX_PAUSE_MS), signal).catch(() => {})
    }
  }
}
