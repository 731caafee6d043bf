/**
 * The signed-in user and the user's role. It is always read from the live controller: a simulation has no
 * tokens of its own.
 */
import { createSignal, type Accessor } from 'solid-js'
import type { SessionBody } from '../../controller/api/schema/sign-in.ts'
import { ApiClient } from '../api/client.ts'
import { LIVE, type World } from '../api/world.ts'
import { whyNot, type Role } from './rights.ts'
import { rememberKnown, storeToken } from './token.ts'

export type { Role } from './rights.ts'

export interface Session {
  /** null: not requested yet. */
  readonly who: Accessor<SessionBody | null>
  /** The request has ended, successfully or not. */
  readonly isAsked: Accessor<boolean>
  /** null: permitted; otherwise the reason, as the text of a disabled button. */
  whyNot(least: Role): string | null
  readonly isSignInNeeded: Accessor<boolean>
  signInWith(token: string): Promise<boolean>
  signOut(): Promise<void>
  ask(): Promise<void>
}

export function createSession(world: World): Session {
  const api = new ApiClient(LIVE.apiBase)
  const [who, setWho] = createSignal<SessionBody | null>(null)
  const [isAsked, setAsked] = createSignal(false)
  const ask = async (): Promise<void> => {
    const answer = await api.get<SessionBody>('/auth/session')
    rememberKnown(answer.caller !== null)
    // A token that the controller does not accept is useless.
    if (answer.caller === null) storeToken(null)
    setWho(answer)
  }
  void ask()
    .catch(() => {})
    .then(() => setAsked(true))
  return {
    who,
    isAsked,
    ask,
    whyNot: (least) => whyNot(who(), least, world),
    isSignInNeeded: () => who() !== null && who()?.caller === null,
    async signInWith(token) {
      storeToken(token)
      await ask()
      if (who()?.caller !== null) {
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
