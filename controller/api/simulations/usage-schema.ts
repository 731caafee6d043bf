import { Type, type Static } from 'typebox'
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
  files: Type.Object({
    bytes: count('Size of the uploaded files of tasks of this owner (PUT /blobs/{hash})'),
    limit_bytes: count('Limit of their size (CONTROLLER_FILES_MAX_MIB_PER_OWNER)'),
    total_bytes: count('Size of all uploaded files of tasks'),
    total_limit_bytes: count('Limit of the size of all (CONTROLLER_FILES_MAX_MIB)'),
    folder_limit_bytes: count('Limit of the size of one folder (CONTROLLER_WORKDIR_MAX_MIB)'),
  }),
})
export type UsageBody = Static<typeof UsageSchema>
