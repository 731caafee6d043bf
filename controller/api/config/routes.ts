import type { Config, ConfigFields } from '../../model/config.ts'
import { ask } from '../http/ask.ts'
import { callerOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { problemOfRefusal } from '../http/errors.ts'
import { changePart } from '../twin/forecasts.ts'
import { configEtag } from '../http/etag.ts'
import { operation } from '../http/operation.ts'
import { requireTag } from '../http/preconditions.ts'
import { presentConfig, presentOver } from './present.ts'
import { presentImpact } from './present-impact.ts'
import { ChangedConfigSchema, ConfigChangeSchema, ConfigRef, type ChangedConfigBody } from './schema.ts'
import { DryRunQuerySchema, type DryRunQuery } from './impact-schema.ts'

const getConfig = operation(
  {
    operationId: 'getConfig',
    role: 'viewer',
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
    summary: 'Change and persist the configuration',
    description:
      'Omitted fields stay unchanged. The environment has no effect afterwards. Lowering a setting does ' +
      'not evict tasks: `over` reports the excess. With dry_run the response is the resulting ' +
      'configuration with its impact, and nothing is changed.',
    tags: ['configuration'],
    querystring: DryRunQuerySchema,
    body: ConfigChangeSchema,
    response: { 200: ChangedConfigSchema },
  },
  ['precondition_failed', 'store_failed'],
  'specification',
)

/** GET and PUT /config (specification 4). */
export function configRoutes(app: ApiApp, { commands, views, twin }: ApiContext): void {
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
export async function changeConfig(
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
