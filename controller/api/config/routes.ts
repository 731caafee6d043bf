import type { Config, ConfigFields } from '../../model/config.ts'
import type { ConfigRecord } from '../../ports/store.ts'
import type { Over } from '../../query/preview/impact.ts'
import { callerOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ask } from '../http/ask.ts'
import { notFound, problemOfRefusal } from '../http/errors.ts'
import { presentInstant } from '../http/instant.ts'
import { operation } from '../http/operation.ts'
import { configEtag, requireTag } from '../http/preconditions.ts'
import { changePart } from '../twin/forecasts.ts'
import { DryRunQuerySchema, type DryRunQuery } from './impact-schema.ts'
import { presentImpact } from './present-impact.ts'
import {
  ChangedConfigSchema,
  ConfigChangeSchema,
  ConfigRef,
  RevisionPageSchema,
  RevisionPathSchema,
  RevisionQuerySchema,
  type ChangedConfigBody,
  type ConfigBody,
  type OverBody,
  type RevisionBody,
} from './schema.ts'

const getConfig = operation(
  {
    operationId: 'getConfig',
    role: 'viewer',
    answerHeaders: ['ETag'],
    summary: 'The live configuration',
    description:
      'Before the first successful PUT, default_vram_overcommit_percent comes from ' +
      'CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT.',
    tags: ['configuration'],
    response: { 200: ConfigRef },
  },
  [],
  'specification',
)

const putConfig = operation(
  {
    operationId: 'putConfig',
    role: 'operator',
    answerHeaders: ['ETag'],
    summary: 'Change and persist the configuration',
    description:
      'Omitted fields stay unchanged. Afterwards, environment variables have no effect on these ' +
      'settings. Lowering a setting does not swap out tasks; `over` reports the excess. With dry_run, ' +
      'returns the resulting configuration and its impact without applying the change.',
    tags: ['configuration'],
    querystring: DryRunQuerySchema,
    body: ConfigChangeSchema,
    response: { 200: ChangedConfigSchema },
  },
  ['precondition_failed', 'store_failed'],
  'specification',
)

/** GET and PUT /config (specification 4). */
export function configRoutes(app: ApiApp, api: ApiContext): void {
  settingRoutes(app, api)
  revisionRoutes(app, api)
}

function settingRoutes(app: ApiApp, { commands, views, twin }: ApiContext): void {
  // Configurations are immutable, so the same object has the same text.
  let written: { readonly config: Config; readonly etag: string; readonly text: string } | null = null
  app.get('/config', { schema: getConfig }, (_request, reply) => {
    const config = views.config()
    if (written?.config !== config) {
      written = { config, etag: configEtag(config), text: reply.serialize(presentConfig(config)) as string }
    }
    void reply.header('etag', written.etag).type('application/json; charset=utf-8')
    return written.text as never
  })

  app.put('/config', { schema: putConfig }, async (request, reply) => {
    requireTag(request.headers, configEtag(views.config()))
    const { etag, body } = await changeConfig(
      { commands, views, twin },
      request.body,
      callerOf(request).name,
      request.query,
    )
    reply.header('etag', etag)
    return body
  })
}

/** Applies the change or returns its impact, with the ETag of the live configuration. */
async function changeConfig(
  { commands, views, twin }: Pick<ApiContext, 'commands' | 'views' | 'twin'>,
  change: Partial<ConfigFields>,
  author: string | null,
  { dry_run: isDryRun = false, forecast = true }: DryRunQuery,
): Promise<{ readonly etag: string; readonly body: ChangedConfigBody }> {
  if (isDryRun) {
    const planned = views.planConfig(change)
    if (!planned.ok) throw problemOfRefusal(planned.refusal)
    const { value, impact } = planned.value
    const { overCommittedMib, reserveDeficitMib } = impact.total.after
    const over = { gpuCount: impact.gpusOver.count, overCommittedMib, reserveDeficitMib }
    const etag = configEtag(views.config())
    const part = await changePart(twin, { config: change }, forecast)
    return {
      etag,
      body: {
        ...presentConfig(value),
        over: presentOver(over),
        dry_run: true,
        impact: presentImpact(impact, part),
      },
    }
  }
  const config = await ask<Config>((answer) => commands.putConfig(change, author, answer))
  return { etag: configEtag(config), body: { ...presentConfig(config), over: presentOver(views.over()) } }
}

const listRevisions = operation(
  {
    operationId: 'listConfigRevisions',
    role: 'viewer',
    summary: 'Configuration history, newest first',
    description:
      'Each revision has its author, time and changed fields. For older revisions, send `next_before` as ' +
      '`before`.',
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
    answerHeaders: ['ETag'],
    summary: 'Restore an earlier revision as a new revision',
    description: 'The response, errors and dry_run are the same as in PUT /config.',
    tags: ['configuration'],
    params: RevisionPathSchema,
    querystring: DryRunQuerySchema,
    response: { 200: ChangedConfigSchema },
  },
  ['not_found', 'precondition_failed', 'store_failed'],
)

const DEFAULT_LIMIT = 50

/** GET /config/revisions, POST /config/revisions/{revision}/restore. */
function revisionRoutes(app: ApiApp, { commands, views, twin }: ApiContext): void {
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

function presentConfig(config: Config): ConfigBody {
  return { ...config.fields, source: config.source, revision: config.revision }
}

function presentOver({ gpuCount, overCommittedMib, reserveDeficitMib }: Over): OverBody {
  return { gpus: gpuCount, over_committed_mib: overCommittedMib, reserve_deficit_mib: reserveDeficitMib }
}

function presentRevision(
  { revision, at, author, fields }: ConfigRecord,
  before: ConfigFields | null,
): RevisionBody {
  const names = Object.keys(fields) as (keyof ConfigFields)[]
  const changed = before === null ? names : names.filter((name) => fields[name] !== before[name])
  return { revision, at: presentInstant(at), author, changed, before, after: fields }
}
