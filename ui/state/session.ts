/**
 * The signed-in user and the user's role. It is always read from the live controller: a simulation has no
 * tokens of its own.
 */
import { createSignal, type Accessor } from 'solid-js'
import type { SessionBody } from '../../controller/api/auth/sign-in-schema.ts'
import { ApiClient } from '../api/client.ts'
import { LIVE, type World } from '../api/world.ts'
import { whyNot, type Role } from './rights.ts'
import { rememberAuthenticated, storeToken } from '../api/token.ts'

export interface Session {
  /** null: not requested yet. */
  readonly body: Accessor<SessionBody | null>
  /** The request has ended, successfully or not. */
  readonly isLoaded: Accessor<boolean>
  /** null: permitted; otherwise the reason, as the text of a disabled button. */
  whyNot(required: Role): string | null
  readonly isSignInNeeded: Accessor<boolean>
  signInWith(token: string): Promise<boolean>
  signOut(): Promise<void>
  refresh(): Promise<void>
}

export function createSession(world: World): Session {
  const api = new ApiClient(LIVE.apiBase)
  const [body, setBody] = createSignal<SessionBody | null>(null)
  const [isLoaded, setLoaded] = createSignal(false)
  const refresh = async (): Promise<void> => {
    const answer = await api.get<SessionBody>('/auth/session')
    rememberAuthenticated(answer.caller !== null)
    // A token that the controller does not accept is useless.
    if (answer.caller === null) storeToken(null)
    setBody(answer)
  }
  void refresh()
    .catch(() => {})
    .then(() => setLoaded(true))
  return {
    body,
    isLoaded,
    refresh,
    whyNot: (required) => whyNot(body(), required, world),
    isSignInNeeded: () => body() !== null && body()?.caller === null,
    async signInWith(token) {
      storeToken(token)
      await refresh()
      if (body()?.caller !== null) {
        // Restarts the feed and all requests with the token.
        location.reload()
        return true
      }
      return false
    },
    async signOut() {
      await api.send('POST', '/auth/logout').catch(() => {})
      storeToken(null)
      location.reload()
    },
  }
}
