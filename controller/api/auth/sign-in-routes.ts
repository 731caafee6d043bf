import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ProviderFault } from '../../ports/identity-provider.ts'
import type { Access } from './access.ts'
import { addressOf } from './gate.ts'
import { cookieIn, cookieText, LOGIN_COOKIE, sessionCookieOf } from './cookies.ts'
import { ownPath, type SignIn, type SignInOutcome } from './sign-in.ts'
import { callerOf, type Caller } from './caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { presentInstantOrNull } from '../http/instant.ts'
import {
  CallbackQuerySchema,
  NextStepSchema,
  RedirectSchema,
  SessionSchema,
  SignInQuerySchema,
} from './sign-in-schema.ts'

const getSession = operation({
  operationId: 'getSession',
  role: 'public',
  summary: 'The caller and the available sign-in methods',
  description: 'For pages and scripts that need to choose a sign-in method. Requires no authentication.',
  tags: ['access'],
  response: { 200: SessionSchema },
})

const beginSignIn = operation(
  {
    operationId: 'beginSignIn',
    role: 'public',
    answerHeaders: ['Location', 'Set-Cookie', 'Vary'],
    summary: 'Sign in through the identity provider, with a browser',
    description:
      'Redirects the browser to the identity provider, which redirects it to /auth/callback, where a ' +
      'session starts.',
    tags: ['access'],
    querystring: SignInQuerySchema,
    response: { 200: NextStepSchema, 302: RedirectSchema },
  },
  ['not_found', 'provider_unreachable'],
)

const finishSignIn = operation(
  {
    operationId: 'finishSignIn',
    role: 'public',
    answerHeaders: ['Location', 'Set-Cookie', 'Vary'],
    summary: 'Callback for the identity provider',
    description:
      'If the sign-in fails, redirects to the page with the query parameter sign_in_failed: expired, ' +
      'denied, no_role or provider_unreachable.',
    tags: ['access'],
    querystring: CallbackQuerySchema,
    response: { 200: NextStepSchema, 302: RedirectSchema },
  },
  ['not_found'],
)

const signOut = operation({
  operationId: 'signOut',
  role: 'viewer',
  answerHeaders: ['Set-Cookie'],
  summary: 'End the session of this browser',
  description: 'Open streams of the session end within 5 s. Tokens are not affected.',
  tags: ['access'],
  routine: true,
  response: { 204: Type.Null({ description: 'Signed out' }) },
})

const AUTH_PATH = '/api/v1/auth'

/** /auth/session, /auth/login, /auth/callback and /auth/logout. */
export function signInRoutes(app: ApiApp, { access }: ApiContext): void {
  const { authenticator, signIn } = access
  const configured = (): SignIn => {
    if (signIn === null) throw new ApiProblem('not_found', 'No identity provider is configured. Use a token.')
    return signIn
  }

  app.get('/auth/session', { schema: getSession }, (request) => {
    const caller = authenticator.isRequired
      ? authenticator.knownCaller(request.headers, request.raw.socket)
      : callerOf(request)
    return {
      is_open: !authenticator.isRequired,
      sign_in: authenticator.isRequired
        ? signIn === null
          ? ['token' as const]
          : ['provider' as const, 'token' as const]
        : [],
      provider: signIn?.provider ?? null,
      caller: caller === null ? null : presentCaller(caller, signIn),
    }
  })

  app.get('/auth/login', { schema: beginSignIn }, async ({ query, headers }, reply) => {
    const way = configured()
    const { url, id, maxAgeSeconds } = await way.begin(ownPath(query.return_to)).catch((error: unknown) => {
      if (!(error instanceof ProviderFault)) throw error
      throw new ApiProblem(
        'provider_unreachable',
        `The identity provider is unreachable: ${error.message}.`,
        {
          headers: { 'retry-after': '10' },
          cause: error,
        },
      )
    })
    reply.header('set-cookie', loginCookie(id, maxAgeSeconds, way.isSecure))
    return sendTo(reply, url, headers.accept)
  })

  app.get('/auth/callback', { schema: finishSignIn }, async (request, reply) => {
    const way = configured()
    const query = new URL(request.url, 'http://localhost').searchParams
    const outcome = await way.finish(cookieIn(request.headers.cookie, LOGIN_COOKIE), query)
    recordSignIn(access, request, outcome)
    const over = loginCookie('', 0, way.isSecure)
    if (!outcome.ok) {
      request.log.warn({ failure: outcome.failure, why: outcome.why }, 'a sign-in failed')
      reply.header('set-cookie', over)
      return sendTo(reply, `/?sign_in_failed=${outcome.failure}`, request.headers.accept)
    }
    const maxAge = Math.floor(way.sessions.lifetimeMs / 1000)
    reply.header('set-cookie', [over, sessionCookie(outcome.secret, maxAge, way.isSecure)])
    return sendTo(reply, outcome.returnTo, request.headers.accept)
  })

  app.post('/auth/logout', { schema: signOut }, async (request, reply) => {
    const { tokenId } = callerOf(request)
    if (signIn !== null && tokenId !== null) {
      await signIn.sessions.end(tokenId)
      reply.header('set-cookie', sessionCookie('', 0, signIn.isSecure))
    }
    return reply.code(204).send(null)
  })
}

/** Lax: the redirect from the identity provider must carry it. */
function loginCookie(value: string, maxAge: number, secure: boolean): string {
  return cookieText({ name: LOGIN_COOKIE, value, path: AUTH_PATH, maxAge, sameSite: 'lax', secure })
}

function sessionCookie(value: string, maxAge: number, secure: boolean): string {
  return cookieText({ name: sessionCookieOf(secure), value, path: '/', maxAge, sameSite: 'strict', secure })
}

/** Audits a sign-in explicitly, because GET requests are not audited. */
function recordSignIn({ trail, signIn }: Access, request: FastifyRequest, outcome: SignInOutcome): void {
  if (trail === null) return
  const caller = outcome.ok ? outcome.caller : null
  const subject = {
    kind: 'control' as const,
    actor: caller?.name ?? null,
    role: caller?.role ?? null,
    tokenId: caller?.tokenId ?? null,
    address: addressOf(request),
    requestId: request.id,
    action: 'signIn',
    target: `at ${signIn?.provider ?? ''}${outcome.ok ? '' : `: ${outcome.failure}`}`,
  }
  if (outcome.ok) trail.end(trail.begin(subject), subject, 302, null)
  else trail.end(null, subject, 403, 'forbidden')
}

function presentCaller({ name, role, tokenId }: Caller, signIn: SignIn | null) {
  return {
    name,
    role,
    expires_at: presentInstantOrNull(tokenId === null ? null : (signIn?.sessions.expiresAt(tokenId) ?? null)),
  }
}

/** Sends a redirect, or JSON to a caller that accepts JSON but not HTML. */
function sendTo(reply: FastifyReply, url: string, accept = ''): FastifyReply {
  reply.header('vary', 'accept')
  if (/\bapplication\/json\b/i.test(accept) && !/\btext\/html\b/i.test(accept))
    return reply.code(200).send({ location: url })
  return reply.code(302).header('location', url).send(null)
}
