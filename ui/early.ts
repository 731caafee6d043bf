/**
 * Runs before the page's own script, is a fiftieth of its size, and sends the first requests of the page, so
 * that responses and script arrive at the same time. The page also works without it: missing responses are
 * requested as usual.
 */
import type { SessionBody } from '../controller/api/auth/sign-in-schema.ts'
import { firstRequests } from './first-requests.ts'
import { LIVE_API } from './api/early-responses.ts'
import { storedToken, wasAuthenticated } from './api/token.ts'

const TIMEOUT_MS = 20_000
const answers = new Map<string, Promise<Response>>()
globalThis.headroomEarly = { at: performance.now(), responses: answers }

const session = request(`${LIVE_API}/auth/session`)
announce(`${LIVE_API}/auth/session`, session)
const isAuthenticated = wasAuthenticated()
for (const url of firstRequests(location.pathname, location.search))
  announce(url, isAuthenticated ? request(url) : session.then(requireAuthenticated).then(() => request(url)))

/** A failed response is requested again by its consumer. */
function announce(url: string, answer: Promise<Response>): void {
  answer.catch(() => {})
  answers.set(url, answer)
}

/** Requests that would be rejected are not sent: the browser would log them in its console. */
async function requireAuthenticated(answer: Response): Promise<void> {
  if (((await answer.clone().json()) as SessionBody).caller === null) throw new Error('not signed in')
}

function request(url: string): Promise<Response> {
  const token = storedToken()
  const headers = {
    accept: 'application/json',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  }
  return fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) })
}
