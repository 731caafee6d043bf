/**
 * The token of the user, kept in this browser until sign-out. A provider session is a cookie, which scripts
 * cannot read.
 */
const KEY = 'headroom-token'

export function storedToken(): string | null {
  return localStorage.getItem(KEY)
}

export function storeToken(token: string | null): void {
  if (token === null) localStorage.removeItem(KEY)
  else localStorage.setItem(KEY, token)
}

const KNOWN = 'headroom-was-known'

/** True if the last user of this browser was authenticated, or authentication was not required. */
export function wasKnown(): boolean {
  return localStorage.getItem(KNOWN) !== null
}

export function rememberKnown(isKnown: boolean): void {
  if (isKnown) localStorage.setItem(KNOWN, 'yes')
  else localStorage.removeItem(KNOWN)
}
