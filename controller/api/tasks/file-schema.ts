import { Type, type Static } from 'typebox'
import { MAX_FILE_BYTES, MAX_LISTED_FILES, MAX_PATH_LENGTH } from '../../../protocol/limits.ts'
import { closed, count, instant, integer, oneOf } from '../http/fields-schema.ts'

const path = (description: string, minLength = 0) =>
  Type.String({ minLength, maxLength: MAX_PATH_LENGTH, pattern: '^[^\\u0000]*$', description })

const WorkFileSchema = Type.Object({
  path: Type.String({ description: 'Relative to the work folder' }),
  kind: oneOf(['file', 'folder', 'link', 'other']),
  bytes: count('Size of a file; 0 for other kinds'),
  modified_at: instant('Time of the last change, according to the clock of the GPU server'),
})

export const WorkFilesSchema = Type.Object({
  task_id: Type.String(),
  attempt: count('Attempt that used this work folder: the latest one'),
  node_id: Type.String({ description: 'Node on which the attempt ran' }),
  items: Type.Array(WorkFileSchema),
  is_complete: Type.Boolean({
    description: 'false: there are more items; to continue, send the last path as `after`',
  }),
})

export type WorkFileBody = Static<typeof WorkFileSchema>
export type WorkFilesBody = Static<typeof WorkFilesSchema>

export const WorkFilesQuerySchema = closed({
  path: Type.Optional(path('A folder, whose content is listed, or a file; default: the work folder')),
  after: Type.Optional(path('Continue after this path')),
  limit: Type.Optional(integer(1, MAX_LISTED_FILES, { default: MAX_LISTED_FILES })),
})

export const FilePieceSchema = Type.Object({
  task_id: Type.String(),
  attempt: count('Attempt whose work folder contains the file'),
  path: Type.String(),
  offset: count('Position of the data in the file, in bytes'),
  next_offset: count('Send it as `offset` to continue'),
  data: Type.String({ description: 'Bytes, in base64' }),
  bytes: count('Current size of the file'),
  modified_at: instant('Time of the last change of the file'),
  inode: Type.String({ description: 'Identifies the file: a different value means that it was replaced' }),
})
export type FilePieceBody = Static<typeof FilePieceSchema>

export const FileContentQuerySchema = closed({
  path: path('A file, relative to the work folder', 1),
  offset: Type.Optional(integer(0, 999_999_999_999_999, { default: 0, description: 'Start at this byte' })),
  max_bytes: Type.Optional(
    integer(1, MAX_FILE_BYTES, { default: MAX_FILE_BYTES, description: 'Maximum number of bytes' }),
  ),
})
