import { Type } from 'typebox'
import { count, textOrNull } from './fields.ts'

export const UsageSchema = Type.Object({
  owner: textOrNull('Who asks; null: no token is needed here'),
  uploads: Type.Object({
    traces: count('Traces of this owner'),
    scenarios: count('Scenarios of this owner'),
    bytes: count('What they take on disk'),
    limit_bytes: count('What they may take (CONTROLLER_UPLOADS_MAX_MIB_PER_OWNER)'),
    total_bytes: count('What all uploads take'),
    total_limit_bytes: count('What all uploads may take (CONTROLLER_UPLOADS_MAX_MIB)'),
  }),
})
