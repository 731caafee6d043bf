import { Type, type Static } from 'typebox'
import { STORE_KINDS } from '../../model/store-kind.ts'
import { countOrNull, list, oneOf, oneOfOrNull, textOrNull } from './fields-schema.ts'

export const LivezSchema = Type.Object({ status: oneOf(['alive']) })

export const ReadyzQuerySchema = Type.Object({
  role: Type.Optional(oneOf(['leader'], { description: 'leader: report a standby as not ready' })),
})

export const ReadyzSchema = Type.Object({
  status: oneOf(['ready', 'not_ready']),
  checks: list(Type.Object({ name: Type.String(), ok: Type.Boolean(), detail: Type.String() })),
})
export type ReadyzBody = Static<typeof ReadyzSchema>

export const VersionSchema = Type.Object({
  name: oneOf(['headroom']),
  version: Type.String(),
  api: oneOf(['v1']),
  fleet: oneOf(['simulated', 'live'], { description: 'Whether the GPU servers are simulated' }),
  node: Type.String({ description: 'Version of Node.js' }),
  commit: textOrNull('Source commit, if known'),
  schema: countOrNull('Schema version of the store'),
  store_kind: oneOfOrNull(
    STORE_KINDS,
    'live: GPU servers; trial: simulated servers over the broker; simulated: a fleet inside the ' +
      'controller; null: unknown',
  ),
})
export type VersionBody = Static<typeof VersionSchema>

/** Key for the media type of a successful response that is not JSON. */
export const MEDIA_TYPE = 'contentMediaType'

/** Key for additional media types of a response besides JSON. */
export const OTHER_MEDIA_TYPES = 'x-other-media-types'

export const MetricsSchema = Type.String({ [MEDIA_TYPE]: 'text/plain', description: 'One line per sample' })

export const DocsPageSchema = Type.String({ [MEDIA_TYPE]: 'text/html' })
export const DocsStyleSchema = Type.String({ [MEDIA_TYPE]: 'text/css' })

export const OpenApiSchema = Type.Unsafe<object>({
  type: 'object',
  additionalProperties: true,
  description: 'OpenAPI 3.1',
})
