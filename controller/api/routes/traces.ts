/** Traces that people send for their scenarios. */
import type { Readable } from 'node:stream'
import { Type } from 'typebox'
import type { ApiApp, ApiContext } from '../context.ts'
import type { TraceEntry } from '../../ports/simulation.ts'
import { ApiProblem, invalidField } from '../errors.ts'
import { operation, takesFile } from '../operation.ts'
import { presentInstant } from '../present/instant.ts'
import { TracePageSchema, TracePathSchema, TraceQuerySchema, TraceSchema } from '../schema/trace.ts'
import { simulatorOf, uploaderOf, valueOf } from '../simulation-request.ts'

const storeTrace = takesFile(
  operation(
    {
      operationId: 'storeTrace',
      role: 'submitter',
      summary: 'Send a trace, or a file that becomes one',
      description:
        'The body is the file, of any content type, up to 1 GiB. A trace of your own of that name is replaced. It is checked whole; rows that are not kept are counted by reason.',
      tags: ['simulations'],
      querystring: TraceQuerySchema,
      response: { 201: TraceSchema },
    },
    ['conflict', 'forbidden', 'body_too_large', 'too_many_simulations', 'uploads_full'],
  ),
)

const listTraces = operation(
  {
    operationId: 'listTraces',
    role: 'viewer',
    summary: 'Traces that were sent, in order of their names',
    description: 'With the number of tasks, the rows that were dropped by reason, and the size.',
    tags: ['simulations'],
    response: { 200: TracePageSchema },
  },
  ['conflict', 'store_failed'],
)

const deleteTrace = operation(
  {
    operationId: 'deleteTrace',
    role: 'submitter',
    summary: 'Delete a trace',
    description:
      'A submitter may delete traces of their own; an operator all. Simulations that used it keep their results; scenarios that name it can no longer be run.',
    tags: ['simulations'],
    params: TracePathSchema,
    response: { 204: Type.Null({ description: 'Deleted' }) },
  },
  ['not_found', 'forbidden', 'conflict', 'store_failed'],
)

/** POST and GET /traces, DELETE /traces/{trace}. */
export function traceRoutes(app: ApiApp, { simulation }: ApiContext): void {
  const simulator = () => simulatorOf(simulation)

  void app.register(async (scope: ApiApp) => {
    scope.removeAllContentTypeParsers()
    // The body stays a stream: whoever takes it counts.
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    scope.post('/traces', { schema: storeTrace }, async (request, reply) => {
      const { name, format = null, activity_model: activityModel = null } = request.query
      const sent = request.body as Readable | undefined
      if (sent === undefined) throw invalidField('', 'the body must be a file, got nothing')
      // A refusal in the middle of it must still be answered.
      const body = sent.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
      const entry = valueOf(
        await simulator().storeTrace({ name, format, activityModel, body, by: uploaderOf(request) }),
      )
      reply.code(201).header('location', '/api/v1/traces')
      return presentTrace(entry)
    })
  })

  app.get('/traces', { schema: listTraces }, async () => {
    const items = (await simulator().traces()).map(presentTrace)
    return { items, next_cursor: null, total: items.length }
  })

  app.delete('/traces/:trace', { schema: deleteTrace }, async (request, reply) => {
    const { params } = request
    if (!valueOf(await simulator().removeTrace(params.trace, uploaderOf(request)))) {
      throw new ApiProblem('not_found', `There is no trace ${JSON.stringify(params.trace)} that was sent.`)
    }
    return reply.code(204).send(null)
  })
}

function presentTrace({ name, format, tasks, rows, dropped, createdAt, createdBy, bytes }: TraceEntry) {
  return {
    name,
    format,
    tasks,
    rows,
    dropped,
    bytes,
    created_by: createdBy,
    created_at: presentInstant(createdAt),
  }
}
