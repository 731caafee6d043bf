import { Type } from 'typebox'
import type { Instant } from '../../../protocol/units.ts'
import type { AccessRegistry } from '../../engine/inputs/commands/access-registry.ts'
import type { TokenRecord } from '../../ports/store.ts'
import { newSecret } from './token-secrets.ts'
import { ask } from '../http/ask.ts'
import { callerOf } from './caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { presentToken } from './token-present.ts'
import {
  MadeTokenSchema,
  NewTokenSchema,
  TokenPageSchema,
  TokenPathSchema,
  TokenRevocationQuerySchema,
} from './token-schema.ts'

const listTokens = operation({
  operationId: 'listTokens',
  role: 'admin',
  summary: 'All tokens, without their secrets, in order of creation',
  description:
    'Names, roles, expiry and last use (to the hour). A secret is shown only once, when its token is ' +
    'created.',
  tags: ['access'],
  response: { 200: TokenPageSchema },
})

const createToken = operation(
  {
    operationId: 'createToken',
    role: 'admin',
    answerHeaders: ['Location'],
    summary: 'Create a token',
    description:
      'The response contains the secret, which is shown only once. The first token must have the role ' +
      'admin; ' +
      'afterwards every request requires a token.',
    tags: ['access'],
    body: NewTokenSchema,
    response: { 201: MadeTokenSchema },
  },
  ['conflict', 'store_failed'],
)

const revokeToken = operation(
  {
    operationId: 'revokeToken',
    role: 'admin',
    summary: 'Revoke a token',
    description: 'Takes effect immediately. The last admin token is revoked only with `force`.',
    tags: ['access'],
    params: TokenPathSchema,
    querystring: TokenRevocationQuerySchema,
    response: { 204: Type.Null({ description: 'Revoked' }) },
  },
  ['not_found', 'conflict', 'store_failed'],
)

/** GET and POST /tokens, DELETE /tokens/{token_id}. */
export function tokenRoutes(app: ApiApp, { access }: ApiContext): void {
  const { authenticator } = access
  const book = (): AccessRegistry => {
    if (access.book === null)
      throw new ApiProblem(
        'conflict',
        'A simulated cluster has no tokens. Use the tokens of the live controller.',
      )
    return access.book
  }

  app.get('/tokens', { schema: listTokens }, () => {
    const tokens = [...(access.book?.tokens() ?? [])]
    return { items: tokens.map(presentToken), next_cursor: null, total: tokens.length }
  })

  app.post('/tokens', { schema: createToken }, async (request, reply) => {
    const { name, role, expires_in_seconds: seconds = null } = request.body
    if (role !== 'admin' && !authenticator.hasAdmin(null)) {
      throw new ApiProblem(
        'conflict',
        'The first token must have the role `admin`, because only an admin can create more tokens.',
      )
    }
    const { id, secret, hash } = newSecret()
    const now: Instant = access.now()
    const expiresAt = seconds === null ? null : now + seconds * 1000
    const { name: createdBy } = callerOf(request)
    const record = {
      id,
      name,
      role,
      secretHash: hash,
      createdAt: now,
      createdBy,
      expiresAt,
      lastUsedAt: null,
    }
    const token = await ask<TokenRecord>((answer) => book().create(record, answer))
    reply.code(201).header('location', `/api/v1/tokens/${token.id}`)
    return { ...presentToken(token), secret }
  })

  app.delete(
    '/tokens/:token_id',
    { schema: revokeToken },
    async ({ params: { token_id: id }, query }, reply) => {
      const isAdmin = access.book?.token(id)?.role === 'admin'
      if (isAdmin && query.force !== true && !authenticator.hasAdmin(id)) {
        throw new ApiProblem(
          'conflict',
          'This is the last admin token, without which no token can be created. Use force to revoke it ' +
            'anyway.',
        )
      }
      await ask<null>((answer) => book().revoke(id, answer))
      return reply.code(204).send(null)
    },
  )
}
