/**
 * Who sits before the page, and what he may do. Always asked of the live controller: a simulation has no
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
  /** null: not asked yet. */
  readonly who: Accessor<SessionBody | null>
  /** It was asked, and answered or not. */
  readonly isAsked: Accessor<boolean>
  /** null: he may; else why not, in words for a button that is disabled. */
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
    // One that the controller does not know, or not any more, is of no use.
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
        // The feed and every answer begin anew with it.
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
