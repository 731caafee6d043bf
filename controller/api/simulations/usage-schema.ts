import { Type, type Static } from 'typebox'
import { count, textOrNull } from '../http/fields-schema.ts'

export const UsageSchema = Type.Object({
  owner: textOrNull('The caller; null: no authentication required'),
  uploads: Type.Object({
    traces: count('Traces of this owner'),
    scenarios: count('Scenarios of this owner'),
    bytes: count('Size of these traces and scenarios on disk, bytes'),
    limit_bytes: count('Maximum size of the uploads of one owner (CONTROLLER_UPLOADS_MAX_MIB_PER_OWNER)'),
    total_bytes: count('Size of the uploads of all owners'),
    total_limit_bytes: count('Maximum size of the uploads of all owners (CONTROLLER_UPLOADS_MAX_MIB)'),
  }),
  files: Type.Object({
    bytes: count('Size of the task files that this owner uploaded (PUT /blobs/{hash})'),
    limit_bytes: count('Maximum size of the task files of one owner (CONTROLLER_FILES_MAX_MIB_PER_OWNER)'),
    total_bytes: count('Size of the task files of all owners'),
    total_limit_bytes: count('Maximum size of the task files of all owners (CONTROLLER_FILES_MAX_MIB)'),
    folder_limit_bytes: count('Maximum size of one uploaded folder (CONTROLLER_WORKDIR_MAX_MIB)'),
  }),
})
export type UsageBody = Static<typeof UsageSchema>
