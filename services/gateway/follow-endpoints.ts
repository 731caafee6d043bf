/** Keeps the endpoints of a gateway as the controller has them. */
import { ApiError, type HeadroomClient } from '../../clients/typescript/client.ts'
import type { Endpoints as EndpointsBody } from '../../clients/typescript/endpoints.ts'
import { addressIn, type Replica, type ReplicaAddress } from './replica.ts'

const WAIT = '20s'
const RETRY_MS = 1_000
const REFRESH_EVERY_MS = 200

export interface EndpointFollower {
  /** When the controller answered last, by performance.now(); null: never. */
  readonly heardAt: number | null
  /** Where the replica listens; null: nowhere yet, or the controller does not answer. */
  find(replica: Replica): Promise<ReplicaAddress | null>
  /** The first answer: later ones are given to `onEndpoints`. Rejects when it is a refusal. */
  first(): Promise<EndpointsBody>
  /** Until the signal aborts. */
  follow(onEndpoints: (body: EndpointsBody) => void): Promise<void>
  /** Asks now, together with others who ask within 200 ms. */
  refresh(onEndpoints: (body: EndpointsBody) => void): Promise<void>
}

interface FollowerOptions {
  readonly client: HeadroomClient
  readonly signal: AbortSignal
  /** Receives one line for the log. */
  readonly onNote: (line: string) => void
}

export function endpointFollower({ client, signal, onNote }: FollowerOptions): EndpointFollower {
  let heardAt: number | null = null
  let seen: string | undefined
  let isSilent = false
  let refreshed: Promise<void> | null = null
  const read = async (): Promise<EndpointsBody> => {
    const body = await client.endpoints.list({ signal, ...(seen === undefined ? {} : { seen, wait: WAIT }) })
    if (isSilent) onNote('the controller responds again')
    isSilent = false
    heardAt = performance.now()
    seen = body.revision
    return body
  }
  const untilRead = async (isFirst: boolean): Promise<EndpointsBody | null> => {
    while (!signal.aborted) {
      try {
        return await read()
      } catch (error) {
        if (signal.aborted) break
        if (isFirst && error instanceof ApiError && error.status < 500) throw error
        if (!isSilent) onNote(`${(error as Error).message}. Retrying every second`)
        isSilent = true
        await pause(RETRY_MS, signal)
      }
    }
    return null
  }
  return {
    get heardAt() {
      return heardAt
    },
    async find({ taskId, attempt }) {
      const found = await client.endpoints.address(taskId, { signal }).catch(() => null)
      return found?.attempt === attempt && found.address !== null ? addressIn(found.address) : null
    },
    async first() {
      const body = await untilRead(true)
      return body ?? Promise.reject(signal.reason as Error)
    },
    async follow(onEndpoints) {
      for (let body = await untilRead(false); body !== null; body = await untilRead(false)) onEndpoints(body)
    },
    refresh(onEndpoints) {
      refreshed ??= client.endpoints.list({ signal }).then(onEndpoints, () => {})
      setTimeout(() => (refreshed = null), REFRESH_EVERY_MS).unref()
      return refreshed
    },
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })
}
