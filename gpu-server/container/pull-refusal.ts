/**
 * Why an image could not be pulled. Engines say it in words only, and a registry chooses some of them: no
 * words give a reason that closes the node to other tasks.
 */
import type { Refused } from '../guard/containers.ts'

/** The registry answers nothing, too slowly, or that it is out of order. */
const OF_THE_REGISTRY = [
  /\bdial (tcp|udp)\b/,
  /connection (refused|reset)|connection timed out|network is unreachable|no route to host/,
  /no such host|temporary failure in name resolution/,
  /i\/o timeout|tls handshake|x509:|server gave http response to https client/,
  /unexpected eof|context deadline exceeded|request canceled/,
  /toomanyrequests|too many requests/,
  /\b(status( code)?:?|http) 5\d\d\b|service unavailable|bad gateway|gateway time-?out|internal server error/,
]
/** The registry answers that the image is not there for this host. */
const NOT_THERE = [
  /manifest[ _]unknown|name[ _]unknown|not found|no matching manifest|repository does not exist/,
  /denied|unauthorized|authentication required|no basic auth credentials|invalid username\/password/,
  /did not resolve to an alias|no unqualified-search registries|invalid reference format/,
]
export const NO_PROGRESS = 'connection timed out'

/** @param why the engine's words */
export function pullRefusal(image: string, why: string): Refused {
  const words = why.toLowerCase()
  if (OF_THE_REGISTRY.some((pattern) => pattern.test(words)))
    return {
      error: `image ${image}: this host cannot reach its registry: ${why}`,
      refused: { cause: 'host', code: 'registry_unreachable' },
    }
  if (NOT_THERE.some((pattern) => pattern.test(words)))
    return {
      error: `image ${image}: the registry does not have it, or requires a login: ${why}`,
      refused: { cause: 'task', code: 'image_not_found' },
    }
  return imageMissing(`image ${image}: ${why}`)
}

/** It may appear: an operator loads it, or what the engine did not explain passes. */
export function imageMissing(error: string): Refused {
  return { error, refused: { cause: 'task', code: 'image_not_available' } }
}
