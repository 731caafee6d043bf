/** Every request that would change something is written down, with who asked; so is whoever is kept out. */
import type { FastifyInstance, FastifyRequest, preHandlerHookHandler } from 'fastify'
import { callerOf } from './caller.ts'
import type { ProblemCode } from '../http/errors.ts'
import { isRoutine, roleOf } from '../http/operation.ts'
import { isOfAccess, type AuditSubject, type AuditTrail } from './audit-trail.ts'
import { isSafe } from './gate.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Number of its audit entry, once it was let in. */
    auditSeq: number | null
    /** Which problem it was answered with. */
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

function subjectOf(request: FastifyRequest): AuditSubject {
  const { name, role, tokenId } = callerOf(request)
  const { schema } = request.routeOptions
  return {
    kind: roleOf(request.routeOptions) === 'submitter' ? 'work' : 'control',
    actor: name,
    role,
    tokenId,
    address: request.ip,
    requestId: request.id,
    action: String((schema as { readonly operationId?: string } | undefined)?.operationId ?? request.method),
    target: `${request.method} ${request.url.split('?', 1)[0] ?? ''}`,
  }
}
