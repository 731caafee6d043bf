/**
 * Retries requests while the controller is unreachable: a restart of the controller must not end a running
 * task.
 */
import { ApiError, ConnectionError } from '../../clients/typescript/client.ts'
import { setTimeout as sleep } from 'node:timers/promises'

const FIRST_PAUSE_MS = 200
const MAX_PAUSE_MS = 5_000

/**
 * Resolves with the answer, however long it takes. Throws what the controller refuses, and the abort of the
 * signal. Calls `onAway` at the first failure.
 */
export async function retryWhileUnreachable<T>(
  ask: () => Promise<T>,
  onAway: (error: Error) => void,
  signal?: AbortSignal,
): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await ask()
    } catch (error) {
      const isPassing =
        error instanceof ConnectionError ||
        (error instanceof ApiError && (error.status === 429 || error.status === 503))
      if (!isPassing) throw error
      if (failures === 0) onAway(error)
      await sleep(
        Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2),
        undefined,
        signal === undefined ? {} : { signal },
      )
    }
  }
}
