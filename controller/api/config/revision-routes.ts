import type { ConfigFields } from '../../model/config.ts'
import type { ConfigRecord } from '../../ports/store.ts'
import { callerOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { notFound } from '../http/errors.ts'
import { configEtag } from '../http/etag.ts'
import { operation } from '../http/operation.ts'
import { requireTag } from '../http/preconditions.ts'
import { presentRevision } from './present.ts'
import { ChangedConfigSchema, RevisionPageSchema, RevisionPathSchema, RevisionQuerySchema } from './schema.ts'
import { DryRunQuerySchema } from './impact-schema.ts'
import { changeConfig } from './routes.ts'

const listRevisions = operation(
  {
    operationId: 'listConfigRevisions',
    role: 'viewer',
    summary: 'History of the configuration, newest first',
    description: 'Each revision has its author, time and changed fields. Continue with `before`.',
    tags: ['configuration'],
    querystring: RevisionQuerySchema,
    response: { 200: RevisionPageSchema },
  },
  ['store_failed'],
)

const restoreRevision = operation(
  {
    operationId: 'restoreConfigRevision',
    role: 'operator',
    summary: 'Restore an earlier revision as a new one',
    description: 'Response, errors and dry_run as in PUT /config.',
    tags: ['configuration'],
    params: RevisionPathSchema,
    querystring: DryRunQuerySchema,
    response: { 200: ChangedConfigSchema },
  },
  ['not_found', 'precondition_failed', 'store_failed'],
)

const DEFAULT_LIMIT = 50

/** GET /config/revisions, POST /config/revisions/{revision}/restore. */
export function configRevisionRoutes(app: ApiApp, { commands, views, twin }: ApiContext): void {
  app.get(
    '/config/revisions',
    { schema: listRevisions },
    async ({ query: { before = null, limit = DEFAULT_LIMIT } }) => {
      // One extra record, because each is compared with its predecessor.
      const records = await views.stored.configRevisions({ before, limit: limit + 1 })
      const items = records
        .slice(0, limit)
        .map((record, i) => presentRevision(record, predecessorOf(record, records[i + 1])))
      const last = items.at(-1)
      return { items, next_before: records.length > limit && last !== undefined ? last.revision : null }
    },
  )

  app.post('/config/revisions/:revision/restore', { schema: restoreRevision }, async (request, reply) => {
    const { params, query, headers } = request
    const number = Number(params.revision)
    const [record] = await views.stored.configRevisions({ before: number + 1, limit: 1 })
    if (record?.revision !== number) throw notFound('revision', params.revision)
    // No await between comparison and change, so they are atomic.
    requireTag(headers, configEtag(views.config()))
    const { etag, body } = await changeConfig(
      { commands, views, twin },
      record.fields,
      callerOf(request).name,
      query,
    )
    reply.header('etag', etag)
    return body
  })
}

function predecessorOf(record: ConfigRecord, previous: ConfigRecord | undefined): ConfigFields | null {
  return previous?.revision === record.revision - 1 ? previous.fields : null
}
