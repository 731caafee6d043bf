/** The cookies of a sign-in (RFC 6265). */
import { parseCookie, stringifySetCookie, type SetCookie } from 'cookie'

export const LOGIN_COOKIE = 'headroom_login'

const MAX_HEADER = 8_192

/** With the prefix, browsers accept the cookie from this host only, over TLS (RFC 6265bis). */
export function sessionCookieOf(isSecure: boolean): string {
  return isSecure ? '__Host-headroom_session' : 'headroom_session'
}

/** The value of the first cookie with that name, or null. */
export function cookieIn(header: string | undefined, name: string): string | null {
  if (header === undefined || header.length > MAX_HEADER) return null
  return parseCookie(header)[name] ?? null
}

/** A cookie that scripts cannot read. */
export function cookieText(cookie: SetCookie): string {
  return stringifySetCookie({ ...cookie, httpOnly: true })
}
