import { Type } from 'typebox'

/** The scenario language has a schema of its own: scenarios/scenario.schema.json. */
export const SnapshotSchema = Type.Unsafe<object>({
  type: 'object',
  additionalProperties: true,
  description: 'A scenario (docs/scenario-format.md)',
})
