/** Uploaded traces for scenarios. */
import type { Readable } from 'node:stream'
import { Type } from 'typebox'
import type { Blobs } from '../../ports/blobs.ts'
import type { TraceEntry } from '../../ports/simulation.ts'
import { callerOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem, invalidField } from '../http/errors.ts'
import { presentInstant } from '../http/instant.ts'
import { operation, takesFile } from '../http/operation.ts'
import { discardRest } from '../http/refused-upload.ts'
import { simulatorOf, uploaderOf, valueOf } from './simulation-request.ts'
import { TracePageSchema, TracePathSchema, TraceQuerySchema, TraceSchema } from './trace-schema.ts'
import { UsageSchema } from './usage-schema.ts'

const storeTrace = takesFile(
  operation(
    {
      operationId: 'storeTrace',
      role: 'submitter',
      answerHeaders: ['Location'],
      summary: 'Upload a trace, or a file to convert to a trace',
      description:
        'The body is the file, of any content type, up to 1 GiB. Replaces your own trace with the same ' +
        'name. The whole file is checked; dropped rows are counted by reason.',
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
    summary: 'Uploaded traces, by name',
    description: 'Returns the number of tasks, the dropped rows by reason, and the size.',
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
      'A submitter can delete their own traces; an operator can delete all traces. Simulations that used ' +
      'the trace keep their results; scenarios that refer to it can no longer be run.',
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
    // The body stays a stream; the consumer enforces the size limit.
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    scope.post('/traces', { schema: storeTrace }, async (request, reply) => {
      const { name, format = null, activity_model: activityModel = null } = request.query
      const sent = request.body as Readable | undefined
      if (sent === undefined) throw invalidField('', 'the body must be a file, but is missing')
      // A refusal in the middle of the upload still needs a response.
      const body = sent.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
      const by = uploaderOf(request)
      const stored = await simulator().storeTrace({ name, format, activityModel, body, by })
      if (!stored.ok) discardRest(request.raw)
      const entry = valueOf(stored)
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
      throw new ApiProblem('not_found', `Trace ${JSON.stringify(params.trace)} not found.`)
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

const getUsage = operation(
  {
    operationId: 'getUsage',
    role: 'viewer',
    summary: 'Storage used by your uploads, and its limits',
    description: 'Delete your uploads with `DELETE /traces/{trace}` and `DELETE /scenarios/{scenario}`.',
    tags: ['simulations'],
    response: { 200: UsageSchema },
  },
  ['conflict', 'store_failed'],
)

/** GET /usage. */
export function usageRoutes(app: ApiApp, { simulation, blobs }: ApiContext): void {
  app.get('/usage', { schema: getUsage }, async (request) => {
    const { name: owner } = callerOf(request)
    const usage = await simulatorOf(simulation).usage(owner)
    const { traces, scenarios, bytes } = usage
    const limits = {
      limit_bytes: usage.maxBytes,
      total_bytes: usage.totalBytes,
      total_limit_bytes: usage.totalMaxBytes,
    }
    return {
      owner,
      uploads: { traces, scenarios, bytes, ...limits },
      files: await presentBlobUsage(blobs, owner),
    }
  })
}

async function presentBlobUsage(blobs: Blobs | null, owner: string | null) {
  const none = { ownBytes: 0, maxBytesPerOwner: 0, totalBytes: 0, maxBytes: 0 }
  const { ownBytes, maxBytesPerOwner, totalBytes, maxBytes } = (await blobs?.usage(owner)) ?? none
  return {
    bytes: ownBytes,
    limit_bytes: maxBytesPerOwner,
    total_bytes: totalBytes,
    total_limit_bytes: maxBytes,
    folder_limit_bytes: blobs?.maxWorkdirBytes ?? 0,
  }
}
