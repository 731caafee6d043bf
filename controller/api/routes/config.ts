import type { Config } from '../../domain/config.ts'
import { ask } from '../ask.ts'
import { callerOf } from '../caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { configEtag, requireMatch } from '../etag.ts'
import { operation } from '../operation.ts'
import { presentConfig } from '../present/config.ts'
import { ConfigChangeSchema, ConfigRef } from '../schema/config.ts'

const getConfig = operation(
  {
    operationId: 'getConfig',
    role: 'viewer',
    summary: 'The live configuration',
    description: 'Until a PUT succeeded, default_vram_overcommit_percent comes from CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT.',
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
    summary: 'Change the configuration and persist all of it',
    description: 'Fields that are not sent stay as they are. From then on the environment has no effect.',
    tags: ['configuration'],
    body: ConfigChangeSchema,
    response: { 200: ConfigRef },
  },
  ['precondition_failed', 'store_failed'],
  'specification',
)

/** GET and PUT /config (specification 4). */
export function configRoutes(app: ApiApp, { commands, views }: ApiContext): void {
  app.get('/config', { schema: getConfig }, (_request, reply) => {
    const config = views.config()
    reply.header('etag', configEtag(config))
    return presentConfig(config)
  })

  app.put('/config', { schema: putConfig }, async (request, reply) => {
    requireMatch(request.headers['if-match'], configEtag(views.config()))
    const config = await ask<Config>((answer) => commands.putConfig(request.body, callerOf(request).name, answer))
    reply.header('etag', configEtag(config))
    return presentConfig(config)
  })
}
