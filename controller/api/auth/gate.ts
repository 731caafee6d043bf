/**
 * Every request passes these checks before its body is read. In order:
 * 1. Its host name is known.
 * 2. Without authentication, or with a cookie: a change does not come from a page of another site.
 * 3. With tokens: it carries a known token, or comes from a signed-in browser, unless the route is public.
 * 4. Its source is within its rate limit.
 * 5. The caller's role is sufficient for the route.
 * 6. On a route for owners, a submitter accesses only own tasks.
 */
import type { FastifyInstance, FastifyRequest, preHandlerHookHandler } from 'fastify'
import { mayCall, type LeastRole, type RankedRole } from '../../model/role.ts'
import type { Views } from '../../query/views.ts'
import { ApiProblem, type ProblemCode } from '../http/errors.ts'
import { accessOf, isRoutine, roleOf } from '../http/operation.ts'
import type { Access } from './access.ts'
import { isOfAccess, type AuditSubject, type AuditTrail } from './audit-trail.ts'
import { callerOf, type Caller } from './caller.ts'

/** A caller without a token while tokens exist: may use only public routes. */
const STRANGER: Caller = { name: null, role: 'metrics', tokenId: null }
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

function isSafe(method: string): boolean {
  return SAFE_METHODS.has(method)
}

/**
 * @returns null if admitted, otherwise the lookup that is needed first.
 * @throws ApiProblem when the request is refused.
 */
export function admit(request: FastifyRequest, access: Access, views: Views): Promise<void> | null {
  const { hosts, authenticator } = access
  hosts.require(request.headers.host)
  if (!authenticator.isRequired) {
    if (!isSafe(request.method)) requireSameSite(request, access)
    return null
  }
  if (request.is404) {
    limit(request, access, null)
    return null
  }
  const { role, ownersOnly } = accessOf(request.routeOptions as never)
  request.caller = role === 'public' ? STRANGER : authenticated(request, access)
  limit(request, access, request.caller.tokenId)
  // A browser sends its cookie with every request, whatever page caused it.
  if (request.headers.authorization === undefined && !isSafe(request.method)) requireSameSite(request, access)
  requireRole(request.caller, role)
  const other = ownersOnly === true ? 'operator' : ownersOnly === 'or_admin' ? 'admin' : null
  const isForAll = ownersOnly === false || (other !== null && mayCall(request.caller.role, other))
  return isForAll ? null : requireOwner(request, views, other)
}

/** An address with failed attempts is slowed down. */
function authenticated(request: FastifyRequest, access: Access): Caller {
  try {
    return access.authenticator.callerOf(request.headers, request.raw.socket)
  } catch (error) {
    limit(request, access, null)
    throw error
  }
}

function limit(request: FastifyRequest, { ofTokens, ofAddresses }: Access, tokenId: string | null): void {
  const now = performance.now()
  const waitSeconds =
    tokenId === null ? ofAddresses.take(addressOf(request), now) : ofTokens.take(tokenId, now)
  if (waitSeconds === 0) return
  const who = tokenId === null ? 'This address' : 'This token'
  const detail = `${who} has exceeded the request rate limit. Try again in ${waitSeconds} s.`
  throw new ApiProblem('too_many_requests', detail, { headers: { 'retry-after': String(waitSeconds) } })
}

/** A Unix socket has no address. */
export function addressOf({ ip }: { readonly ip: string | undefined }): string {
  return ip ?? 'unix'
}

function requireRole({ role }: Caller, least: LeastRole): void {
  if (mayCall(role, least)) return
  throw new ApiProblem('forbidden', `The request requires the role ${least}; the token has the role ${role}.`)
}

/** The route answers for an unknown task. @param other the role that may do the same for all; null: none */
async function requireOwner(request: FastifyRequest, views: Views, other: RankedRole | null): Promise<void> {
  const { task_id: id = '' } = request.params as { readonly task_id?: string }
  const task = views.openTask(id)?.spec ?? (await views.stored.task(id))
  if (task === null || task.owner === callerOf(request).name) return
  const use = other === null ? 'of that user' : `with the role ${other}`
  throw new ApiProblem('forbidden', `The task belongs to another user. Use a token ${use}.`)
}

/**
 * A browser states the origin of a request; other clients do not. Without this check any page could make a
 * browser on this machine change things here, although it could not read the response.
 */
function requireSameSite({ headers }: FastifyRequest, { hosts }: Access): void {
  const site = headers['sec-fetch-site']
  const isForeignSite = site !== undefined && site !== 'same-origin' && site !== 'none'
  const isForeignOrigin = headers.origin !== undefined && !hosts.isOwnOrigin(headers.origin, headers.host)
  if (isForeignOrigin || (isForeignSite && headers.origin === undefined)) {
    throw new ApiProblem(
      'cross_site_request',
      'Requests from pages of other sites cannot change anything on this server.',
    )
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Number of its audit entry, once it was let in. */
    auditSeq: number | null
    /** Code of the problem in the answer. */
    problem: ProblemCode | null
  }
}

/** @returns what has to be told of every answer once it is complete. */
export function addAuditing(
  app: FastifyInstance,
  trail: AuditTrail | null,
): (request: FastifyRequest, status: number) => void {
  app.decorateRequest('auditSeq', null)
  app.decorateRequest('problem', null)
  if (trail === null) return () => {}
  const begin: preHandlerHookHandler = (request, _reply, done) => {
    if (!isSafe(request.method)) request.auditSeq = trail.begin(subjectOf(request))
    done()
  }
  app.addHook('onRoute', (route) => {
    if ([route.method].flat().every(isSafe) || isRoutine(route)) return
    route.preHandler = [begin, ...[route.preHandler ?? []].flat()]
  })
  return (request, status) => {
    if (isAudited(request, status)) trail.end(request.auditSeq, subjectOf(request), status, request.problem)
  }
}

function isAudited(request: FastifyRequest, status: number): boolean {
  if (request.is404) return false
  if (request.auditSeq !== null) return true
  return status >= 400 && (!isSafe(request.method) || isOfAccess(request.problem))
}

export function subjectOf(request: FastifyRequest): AuditSubject {
  const { name, role, tokenId } = callerOf(request)
  const { schema } = request.routeOptions
  return {
    kind: roleOf(request.routeOptions) === 'submitter' ? 'work' : 'control',
    actor: name,
    role,
    tokenId,
    address: addressOf(request),
    requestId: request.id,
    action: String((schema as { readonly operationId?: string } | undefined)?.operationId ?? request.method),
    target: `${request.method} ${request.url.split('?', 1)[0] ?? ''}`,
  }
}
