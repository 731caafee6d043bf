/**
 * Under which names this server may be asked. A page of somebody else can make a browser ask 127.0.0.1 under
 * a name that it owns (DNS rebinding), and would then read the answers; a name that is not expected is
 * therefore refused. An address cannot be bent that way.
 */
import { isIP } from 'node:net'
import { ApiProblem } from '../http/errors.ts'

export interface HostRules {
  /** @throws ApiProblem misdirected_request */
  require(host: string | undefined): void
  /** Whether a page from there is a page of this server. */
  isOwnOrigin(origin: string, host: string | undefined): boolean
}

/** @param allowed names; `*.example.org` stands for all below it, `*` for any. */
export function hostRules(allowed: readonly string[]): HostRules {
  const isAny = allowed.includes('*')
  const names = new Set(allowed.map((name) => name.toLowerCase()))
  const suffixes = [...names].filter((name) => name.startsWith('*.')).map((name) => name.slice(1))
  const isConfigured = (name: string): boolean =>
    names.has(name) || suffixes.some((suffix) => name.endsWith(suffix))
  const isExpected = (name: string): boolean =>
    isAny || isLoopbackName(name) || isIP(name) !== 0 || isConfigured(name)
  // Browsers and clients send the same few again and again.
  const known = new Set<string>()
  return {
    require(host) {
      if (host !== undefined && known.has(host)) return
      const name = host === undefined ? null : nameIn(host)
      if (name === null || !isExpected(name)) throw misdirected(host)
      if (known.size < KNOWN_LIMIT && host !== undefined) known.add(host)
    },
    isOwnOrigin(origin, host) {
      const url = URL.parse(origin)
      if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return false
      return url.host === host?.toLowerCase() || isConfigured(url.hostname)
    },
  }
}

/** Texts of Host that are remembered as good. */
const KNOWN_LIMIT = 100

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}

/** Without port, brackets and a dot at the end; null when it is none. */
function nameIn(host: string): string | null {
  const name = /^(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9_.-]{1,253}))(?::\d{1,5})?$/i.exec(host)
  return (name?.[1] ?? name?.[2]?.replace(/\.$/, ''))?.toLowerCase() ?? null
}

function misdirected(host: string | undefined): ApiProblem {
  const shown =
    host === undefined
      ? 'The request names no host'
      : `This server is not known as ${JSON.stringify(host.slice(0, 100))}`
  return new ApiProblem(
    'misdirected_request',
    `${shown}; its names are set with CONTROLLER_HTTP_ALLOWED_HOSTS.`,
  )
}
