import type { IncomingMessage } from 'node:http'

/** For the sender of a refused body to stop and read the answer. */
const DISCARDS = { forMs: 5_000, maxBytes: 16 * 1_048_576 }

/**
 * Discards what still arrives of a body that is refused, and ends the connection if the sender does not stop.
 * A connection that is closed with unread bytes is reset, and the sender may lose the answer.
 */
export function discardRest(request: IncomingMessage, { forMs, maxBytes } = DISCARDS): void {
  if (request.complete || request.destroyed) return
  let left = maxBytes
  request.on('data', (part: Buffer) => {
    left -= part.length
    if (left < 0) request.destroy()
  })
  request.resume()
  const timer = setTimeout(() => request.destroy(), forMs).unref()
  request.once('close', () => clearTimeout(timer))
}
