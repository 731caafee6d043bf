/** GET /secrets, PUT and DELETE /secrets/{name}: values that tasks of the caller may use. */
import { isIP } from 'node:net'
import { Type } from 'typebox'
import type { AccessRegistry } from '../../engine/inputs/commands/access-registry.ts'
import { sealedSecret } from '../../model/environment-values.ts'
import type { Sealer } from '../../ports/sealer.ts'
import type { SecretRecord } from '../../ports/store.ts'
import { ask } from '../http/ask.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { presentInstant } from '../http/instant.ts'
import { operation } from '../http/operation.ts'
import { callerOf } from './caller.ts'
import {
  SecretPageSchema,
  SecretPathSchema,
  SecretSchema,
  SecretValueSchema,
  type SecretBody,
} from './secret-schema.ts'

const listSecrets = operation({
  operationId: 'listSecrets',
  role: 'submitter',
  summary: 'Your secrets by name, without their values',
  description:
    'A secret belongs to the name of the token that set it: tokens with the same name share it. No ' +
    'request returns its value.',
  tags: ['access'],
  response: { 200: SecretPageSchema },
})

const putSecret = operation(
  {
    operationId: 'putSecret',
    role: 'submitter',
    summary: 'Set one of your secrets',
    description:
      'The value is stored encrypted. The request is refused on a connection without TLS, unless it ' +
      'comes from the host of the controller. Tasks that are already submitted keep the previous value.',
    tags: ['access'],
    params: SecretPathSchema,
    body: SecretValueSchema,
    response: { 200: SecretSchema },
  },
  ['conflict', 'store_failed'],
)

const deleteSecret = operation(
  {
    operationId: 'deleteSecret',
    role: 'submitter',
    summary: 'Delete one of your secrets',
    description: 'Tasks that are already submitted keep its value until they end.',
    tags: ['access'],
    params: SecretPathSchema,
    response: { 204: Type.Null({ description: 'Deleted' }) },
  },
  ['not_found', 'conflict', 'store_failed'],
)

export function secretRoutes(app: ApiApp, { access }: ApiContext): void {
  const kept = (): { readonly book: AccessRegistry; readonly sealer: Sealer } => {
    const { book, sealer } = access
    if (book === null || sealer === null)
      throw new ApiProblem('conflict', 'A simulated cluster has no secrets. Set them on the live controller.')
    return { book, sealer }
  }

  app.get('/secrets', { schema: listSecrets }, (request) => {
    const secrets = access.book?.secretsOf(callerOf(request).name) ?? []
    return { items: secrets.map(presentSecret), next_cursor: null, total: secrets.length }
  })

  app.put('/secrets/:name', { schema: putSecret }, async (request) => {
    requireConfidential(request)
    const { book, sealer } = kept()
    const { name: owner } = callerOf(request)
    const { name } = request.params
    const sealed = sealedSecret(sealer, owner, name, request.body.value)
    const record: SecretRecord = { owner, name, sealed, updatedAt: access.now() }
    return presentSecret(await ask<SecretRecord>((answer) => book.putSecret(record, answer)))
  })

  app.delete('/secrets/:name', { schema: deleteSecret }, async (request, reply) => {
    const { name: owner } = callerOf(request)
    await ask<null>((answer) => kept().book.deleteSecret(owner, request.params.name, answer))
    return reply.code(204).send(null)
  })
}

function presentSecret({ name, updatedAt }: SecretRecord): SecretBody {
  return { name, updated_at: presentInstant(updatedAt) }
}

interface Connection {
  readonly protocol: string
  readonly ip: string
  readonly headers: Readonly<Record<string, unknown>>
}

/** @throws ApiProblem if others could read the value on its way here */
function requireConfidential({ protocol, ip, headers }: Connection): void {
  const isForwarded = 'x-forwarded-for' in headers || 'forwarded' in headers
  if (protocol === 'https' || (isLoopback(ip) && !isForwarded)) return
  throw new ApiProblem(
    'forbidden',
    'Others can read a secret that is sent without TLS. Use https, or send the request from the host of ' +
      'the controller. If a proxy terminates TLS, add it to CONTROLLER_HTTP_TRUSTED_PROXIES.',
  )
}

function isLoopback(ip: string): boolean {
  return isIP(ip) !== 0 && (ip === '::1' || /^(?:::ffff:)?127\./.test(ip))
}
