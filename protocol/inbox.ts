/**
 * Where answers arrive. The sender of a request names that subject, and the broker lets the answer pass
 * wherever it goes. So the one that answers checks it: otherwise a client could make the controller write to
 * the inbox of another client (docs/protocol.md).
 */
import { clientIdOf } from './subjects.ts'

export const INBOX = '_INBOX'
const CLIENT_INBOXES = `${INBOX}_CLIENT.`

/** The only place where a client may receive answers, on a broker with our configuration. */
export function clientInbox(clientId: string): string {
  return CLIENT_INBOXES + clientId
}

/**
 * Why a request on `subject` gets no answer at `reply`, or null. A client is answered in its own inbox, or
 * below plain `_INBOX`, where no identity of our broker configuration may listen; a GPU server in any inbox
 * but a client's.
 */
export function whyNoAnswerTo(subject: string, reply: string): string | null {
  if (!reply.startsWith(INBOX)) return `must begin with ${INBOX}`
  const clientId = clientIdOf(subject)
  if (clientId === null) return reply.startsWith(CLIENT_INBOXES) ? 'is the inbox of a client' : null
  const own = `${clientInbox(clientId)}.`
  return reply.startsWith(own) || reply.startsWith(`${INBOX}.`) ? null : `must begin with ${own}`
}
