/**
 * The token of whoever signed in with one: kept in this browser until he signs out. A session of a provider
 * is a cookie, which no script sees.
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

/** Whether who sat here last was known to the controller, or nobody had to be. */
export function wasKnown(): boolean {
  return localStorage.getItem(KNOWN) !== null
}

export function rememberKnown(isKnown: boolean): void {
  if (isKnown) localStorage.setItem(KNOWN, 'yes')
  else localStorage.removeItem(KNOWN)
}
