import { Type, type Static } from 'typebox'
import { list, oneOf } from './fields.ts'

export const LivezSchema = Type.Object({ status: oneOf(['alive']) })

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
})
export type VersionBody = Static<typeof VersionSchema>

export const OpenApiSchema = Type.Unsafe<object>({ type: 'object', additionalProperties: true, description: 'OpenAPI 3.1' })
