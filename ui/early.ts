/**
 * Stands before the page's own script, is a fiftieth of its size, and asks for what the address shows first, so that answers and script come at the
 * same time. Nothing depends on it: what it did not ask for, or nobody takes, is asked for as ever.
 */
import type { SessionBody } from '../controller/api/schema/sign-in.ts'
import { firstRequests } from './api/first-requests.ts'
import { LIVE_API } from './api/live-api.ts'
import { storedToken, wasKnown } from './state/token.ts'

const WITHIN_MS = 20_000
const answers = new Map<string, Promise<Response>>()
globalThis.headroomAhead = { at: performance.now(), answers }

const session = ahead(`${LIVE_API}/auth/session`)
const requests = firstRequests(location.pathname, location.search)
if (wasKnown()) requests.forEach(ahead)
else {
  // What would be refused is not asked: the browser would tell of it in its console.
  void session
    .then(async (answer) => {
      if (((await answer.clone().json()) as SessionBody).caller !== null) requests.forEach(ahead)
    })
    .catch(() => {})
}

function ahead(url: string): Promise<Response> {
  const token = storedToken()
  const headers = { accept: 'application/json', ...(token === null ? {} : { authorization: `Bearer ${token}` }) }
  const answer = fetch(url, { headers, signal: AbortSignal.timeout(WITHIN_MS) })
  answers.set(url, answer)
  // Who takes it asks anew.
  answer.catch(() => {})
  return answer
}
