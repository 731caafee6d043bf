import { finished } from 'node:stream'
import { handoverRefusal, type Handover } from '../../ports/handover.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { presentLeader } from './present.ts'
import { LeaderSchema, ResignBodySchema } from './schema.ts'

const getLeader = operation(
  {
    operationId: 'getLeader',
    role: 'viewer',
    summary: 'The controllers that use the store: leader and standbys',
    description:
      'Returns the leader with its epoch, and how far each standby is behind. A standby forwards this ' +
      'request to the leader, like any other request.',
    tags: ['service'],
    response: { 200: LeaderSchema },
  },
  ['conflict', 'store_failed'],
)

const resignLeader = operation(
  {
    operationId: 'resignLeader',
    role: 'admin',
    summary: 'Hand over leadership to a standby',
    description:
      'The leader finishes its requests, ends its term and continues as a standby. It responds before ' +
      'the handover is complete: the handover has succeeded when GET /leader returns a higher epoch. The ' +
      'request is refused if no standby is within 5 s of the leader.',
    tags: ['service'],
    body: ResignBodySchema,
    response: { 202: LeaderSchema },
  },
  ['conflict', 'store_failed'],
)

/** GET /leader, POST /leader/resign. */
export function leaderRoutes(app: ApiApp, { handover }: ApiContext): void {
  let isResigning = false
  app.get('/leader', { schema: getLeader }, async () => presentLeader(await required(handover).view()))

  app.post('/leader/resign', { schema: resignLeader }, async (request, reply) => {
    const { view, resign } = required(handover)
    const to = request.body.to ?? null
    const seen = await view()
    const refusal = isResigning ? 'A handover is already in progress.' : handoverRefusal(seen, to)
    if (refusal !== null) throw new ApiProblem('conflict', refusal)
    isResigning = true
    // The end of the term must not cut off its own answer.
    finished(reply.raw, () => resign(to))
    reply.code(202)
    return presentLeader(seen)
  })
}

function required(handover: Handover | null): Handover {
  if (handover === null) throw new ApiProblem('conflict', 'A simulated cluster has only one controller.')
  return handover
}
