/** The token of whoever signed in with one: kept in this browser until he signs out. A session of a provider is a cookie, which no script sees. */
const KEY = 'headroom-token'

export function storedToken(): string | null {
  return localStorage.getItem(KEY)
}

export function storeToken(token: string | null): void {
  if (token === null) localStorage.removeItem(KEY)
  else localStorage.setItem(KEY, token)
}
