import { Type } from 'typebox'

/** The schema of the scenario language is scenarios/scenario.schema.json. */
export const SnapshotSchema = Type.Unsafe<object>({
  type: 'object',
  additionalProperties: true,
  description: 'A scenario (docs/scenario-format.md)',
})
