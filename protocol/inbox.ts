/**
 * Inboxes for answers. The requester names the inbox, and the broker delivers the answer to any subject. The
 * answering side therefore checks the inbox: otherwise a client could make the controller write to the inbox
 * of another client (docs/protocol.md).
 */
import { clientIdOf } from './subjects.ts'

export const INBOX = '_INBOX'
const CLIENT_INBOXES = `${INBOX}_CLIENT.`

/** The only subject on which a client may receive answers, with our broker configuration. */
export function clientInbox(clientId: string): string {
  return CLIENT_INBOXES + clientId
}

/**
 * Returns why a request on `subject` gets no answer at `reply`, or null. A client is answered in its own
 * inbox, or below plain `_INBOX`, to which no identity of our broker configuration may subscribe. A GPU
 * server is answered in any inbox except a client's.
 */
export function whyNoAnswerTo(subject: string, reply: string): string | null {
  if (!reply.startsWith(INBOX)) return `must begin with ${INBOX}`
  const clientId = clientIdOf(subject)
  if (clientId === null) return reply.startsWith(CLIENT_INBOXES) ? 'is the inbox of a client' : null
  const own = `${clientInbox(clientId)}.`
  return reply.startsWith(own) || reply.startsWith(`${INBOX}.`) ? null : `must begin with ${own}`
}
