/**
 * Names of the cookies of a sign-in. With the prefix browsers take it from this very host alone, over TLS
 * (RFC 6265bis).
 */

export const LOGIN_COOKIE = 'headroom_login'

export function sessionCookieOf(isSecure: boolean): string {
  return isSecure ? '__Host-headroom_session' : 'headroom_session'
}
