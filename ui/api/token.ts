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

const AUTHENTICATED_KEY = 'headroom-was-known'

/** True if the last user of this browser was authenticated, or authentication was not required. */
export function wasAuthenticated(): boolean {
  return localStorage.getItem(AUTHENTICATED_KEY) !== null
}

export function rememberAuthenticated(isAuthenticated: boolean): void {
  if (isAuthenticated) localStorage.setItem(AUTHENTICATED_KEY, 'yes')
  else localStorage.removeItem(AUTHENTICATED_KEY)
}
