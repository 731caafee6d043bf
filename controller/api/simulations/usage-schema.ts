import { Type } from 'typebox'
import { count, textOrNull } from '../http/fields-schema.ts'

export const UsageSchema = Type.Object({
  owner: textOrNull('The caller; null: no authentication required'),
  uploads: Type.Object({
    traces: count('Traces of this owner'),
    scenarios: count('Scenarios of this owner'),
    bytes: count('Their size on disk, bytes'),
    limit_bytes: count('Limit of their size (CONTROLLER_UPLOADS_MAX_MIB_PER_OWNER)'),
    total_bytes: count('Size of all uploads'),
    total_limit_bytes: count('Limit of the size of all uploads (CONTROLLER_UPLOADS_MAX_MIB)'),
  }),
})
