/**
 * Runs before the page's own script, is a fiftieth of its size, and sends the first requests of the page, so
 * that responses and script arrive at the same time. The page also works without it: missing responses are
 * requested as usual.
 */
import type { SessionBody } from '../controller/api/schema/sign-in.ts'
import { firstRequests } from './api/first-requests.ts'
import { LIVE_API } from './api/live-api.ts'
import { storedToken, wasKnown } from './state/token.ts'

const WITHIN_MS = 20_000
const answers = new Map<string, Promise<Response>>()
globalThis.headroomAhead = { at: performance.now(), answers }

const session = ask(`${LIVE_API}/auth/session`)
announce(`${LIVE_API}/auth/session`, session)
const isKnown = wasKnown()
for (const url of firstRequests(location.pathname, location.search))
  announce(url, isKnown ? ask(url) : session.then(requireKnown).then(() => ask(url)))

/** A failed response is requested again by its consumer. */
function announce(url: string, answer: Promise<Response>): void {
  answer.catch(() => {})
  answers.set(url, answer)
}

/** Requests that would be rejected are not sent: the browser would log them in its console. */
async function requireKnown(answer: Response): Promise<void> {
  if (((await answer.clone().json()) as SessionBody).caller === null) throw new Error('not signed in')
}

function ask(url: string): Promise<Response> {
  const token = storedToken()
  const headers = {
    accept: 'application/json',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  }
  return fetch(url, { headers, signal: AbortSignal.timeout(WITHIN_MS) })
}
