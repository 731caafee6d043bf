/**
 * Which of several addresses answers a request: a controller that is stopped accepts connections and never
 * answers, so another one is asked in time.
 */
import { isRepeatable, type Call } from './call.ts'
import { ConnectionError } from './errors.ts'

/** Shorter than the default lease, so that the next address has the request when a controller takes over. */
const PATIENCE_MS = 1_500
/** Parameters that make the controller wait before it answers. */
const WAITING: readonly string[] = ['wait', 'forecast']

/**
 * Returns how long one address may be silent before the next one gets the same request, in ms. Null: only
 * after it has certainly not received the request.
 * 1. A request that may act twice is in one place only.
 * 2. A request that waits at the controller is answered late.
 * 3. A chunk of a file takes long on a slow network, and would take longer twice.
 */
export function patienceMs(call: Call): number | null {
  if (!isRepeatable(call)) return null
  if (WAITING.some((name) => call.query?.[name] !== undefined)) return null
  if (call.body instanceof Uint8Array) return null
  return PATIENCE_MS
}

/**
 * Resolves with the first answer, and aborts the other requests. Asks the next address when one has certainly
 * not received the request, or has been silent for `patience` ms; a silent one may still answer. Rejects with
 * the last error once all requests have failed.
 */
export function firstAnswer<T>(
  urls: readonly string[],
  patience: number | null,
  ask: (url: string, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const asked: AbortController[] = []
    let failures = 0
    let timer: NodeJS.Timeout | undefined
    const askNext = (): void => {
      clearTimeout(timer)
      const url = urls[asked.length]
      if (url === undefined) return
      const own = new AbortController()
      asked.push(own)
      if (patience !== null && asked.length < urls.length) timer = setTimeout(askNext, patience)
      ask(url, own.signal).then(
        (answer) => {
          clearTimeout(timer)
          for (const each of asked) if (each !== own) each.abort()
          resolve(answer)
        },
        (error: unknown) => {
          failures += 1
          if (isUnsent(error) && asked.length < urls.length) return askNext()
          if (failures < asked.length) return
          clearTimeout(timer)
          reject(error as Error)
        },
      )
    }
    askNext()
  })
}

function isUnsent(error: unknown): boolean {
  return error instanceof ConnectionError && error.isUnsent
}
