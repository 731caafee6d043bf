/** Messages about uploaded files of tasks and about the work folders of attempts. */
import { count, flag, integer, list, oneOf, record, text } from './fields.ts'
import type { Value } from './fields.ts'
import { MAX_FILE_BYTES, MAX_LISTED_FILES } from './limits.ts'
import { attempt, id, sha256, workPath } from './message-fields.ts'

// ── node → controller ────────────────────────────────────────────────────────

const fileData = text(0, Math.ceil(MAX_FILE_BYTES / 3) * 4, 'Bytes in base64, from offset on')
const modified_ms = count(
  'Time of the last change, milliseconds since the Unix epoch by the clock of the host',
)

const WorkFile = record({
  path: workPath('Relative to the work folder'),
  kind: oneOf(['file', 'folder', 'link', 'other']),
  bytes: count('Size of a file; 0 for the others'),
  modified_ms,
})
export type WorkFile = Value<typeof WorkFile>

/** The answer to `list_files`. */
export const FileList = record({
  op: oneOf(['files']),
  ...attempt,
  items: list(WorkFile, 0, MAX_LISTED_FILES, 'By path, a folder before its content'),
  is_complete: flag('No more follow'),
})
export type FileList = Value<typeof FileList>

/** The answer to `read_file`. */
export const FilePiece = record({
  op: oneOf(['file']),
  ...attempt,
  path: workPath('As requested'),
  offset: count('As requested'),
  data: fileData,
  bytes: count('Current size of the file'),
  modified_ms,
  inode: text(1, 32, 'Identifies the file: a different value means that it was replaced'),
})
export type FilePiece = Value<typeof FilePiece>

/**
 * Reads a part of an uploaded file for an attempt that starts on the node; answered by `blob` or `refused`.
 */
export const ReadBlob = record({
  op: oneOf(['read_blob']),
  node_id: id('The ID in the subject; another one is refused'),
  ...attempt,
  sha256: sha256('The manifest of the start, or a chunk that the manifest names'),
  offset: count('First byte of the answer'),
  max_bytes: integer(1, MAX_FILE_BYTES, 'Maximum length of the answer'),
})
export type ReadBlob = Value<typeof ReadBlob>

// ── controller → node ────────────────────────────────────────────────────────

/** The answer to `read_blob`. */
export const Blob = record({
  op: oneOf(['blob']),
  ...attempt,
  sha256: sha256('As requested'),
  offset: count('As requested'),
  data: fileData,
  bytes: count('Size of the whole'),
})
export type Blob = Value<typeof Blob>

/** Lists files in the work folder of an attempt; answered by `files` or `refused`. */
export const ListFiles = record({
  op: oneOf(['list_files']),
  ...attempt,
  path: workPath('A folder, whose content is listed, or a file. Empty: the work folder'),
  after: workPath('The last path of the answer before; empty: from the beginning'),
  max_items: integer(1, MAX_LISTED_FILES, 'Maximum number of items in the answer'),
})
export type ListFiles = Value<typeof ListFiles>

/** Reads a part of a file in the work folder of an attempt; answered by `file` or `refused`. */
export const ReadFile = record({
  op: oneOf(['read_file']),
  ...attempt,
  path: workPath('Relative to the work folder'),
  offset: count('First byte of the answer'),
  max_bytes: integer(1, MAX_FILE_BYTES, 'Maximum length of the answer'),
})
export type ReadFile = Value<typeof ReadFile>
