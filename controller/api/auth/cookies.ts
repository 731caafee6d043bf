/** Cookies, as few as possible (RFC 6265). */

export interface CookieFields {
  readonly value: string
  readonly path: string
  readonly maxAgeSeconds: number
  /** Strict: never with a request that a page of another site began; lax: also when a link leads here. */
  readonly sameSite: 'Strict' | 'Lax'
  /** Only over TLS. */
  readonly isSecure: boolean
}

const MAX_HEADER = 8_192

/** The value of the first cookie of that name; null when there is none. */
export function cookieIn(header: string | undefined, name: string): string | null {
  if (header === undefined || header.length > MAX_HEADER) return null
  for (const pair of header.split(';')) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim()
  }
  return null
}

/** No script reads it. */
export function cookieText(
  name: string,
  { value, path, maxAgeSeconds, sameSite, isSecure }: CookieFields,
): string {
  return `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=${sameSite}${isSecure ? '; Secure' : ''}`
}
