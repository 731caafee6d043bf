/** Which endpoint a request may call, or why none. */
import type { IncomingMessage } from 'node:http'
import { hostOf, isLoopbackHost } from './host-names.ts'
import { judgePath } from './engine-paths.ts'
import type { Endpoint } from './endpoint.ts'
import { endpointTargetIn } from './endpoint-target.ts'
import type { Endpoints } from './endpoints.ts'
import type { GatewayFigures } from './gateway-figures.ts'

export interface Admitted {
  readonly endpoint: Endpoint
  readonly tokenId: string
  /** For the task. */
  readonly path: string
}

export interface Refused {
  readonly status: number
  readonly detail: string
  /** The controller may know the endpoint by now. */
  readonly isUnknown?: true
}

export interface AdmissionOptions {
  readonly endpoints: Endpoints
  readonly figures: GatewayFigures
  readonly hostNames: readonly string[]
  /** Also loopback names and addresses, for tests. */
  readonly sameHost: boolean
}

/** In order: the host name, the token, the endpoint, its owner, the path. Without a token nothing is told. */
export function admitCall(
  { headers, url = '' }: IncomingMessage,
  { endpoints, figures, hostNames, sameHost }: AdmissionOptions,
): Admitted | Refused {
  if (!isOwnHost(headers.host, hostNames, sameHost)) {
    figures.stranger('host')
    return refusal(421, 'This gateway does not have that host name (--host-name).')
  }
  const token = endpoints.authenticate(headers.authorization)
  if (token === null) {
    figures.stranger('token')
    return refusal(401, 'Send a token with the role endpoint: Authorization: Bearer …')
  }
  const target = endpointTargetIn(url)
  if (target === null) {
    figures.stranger('endpoint')
    return refusal(404, 'The path of an endpoint is /OWNER/NAME/….')
  }
  const { owner, name, path } = target
  if (owner !== token.owner) {
    figures.stranger('owner')
    return refusal(403, `The token is valid only for endpoints of ${token.owner}.`)
  }
  const endpoint = endpoints.find(owner, name)
  if (endpoint === undefined) {
    figures.stranger('endpoint')
    const detail = 'No open task of that name declares an http port.'
    return { status: 404, detail, isUnknown: true }
  }
  const verdict = judgePath(path, endpoint.isEngine)
  if (verdict === 'pass') return { endpoint, tokenId: token.id, path }
  figures.refused(endpoint, verdict)
  if (verdict === 'malformed') return refusal(400, 'The path is ambiguous.')
  return refusal(403, 'This path is used to administer the task and is not forwarded.')
}

function refusal(status: number, detail: string): Refused {
  return { status, detail }
}

function isOwnHost(header: string | undefined, names: readonly string[], sameHost: boolean): boolean {
  const host = hostOf(header)
  return host !== null && (names.includes(host) || (sameHost && isLoopbackHost(host)))
}
