/** GET /tasks/{task_id}/files and /files/content: the work folder of the latest attempt. */
import { MAX_FILE_BYTES, MAX_LISTED_FILES } from '../../../protocol/limits.ts'
import type { FilesAnswer, TaskFiles, WorkFolder } from '../../ports/task-files.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { presentInstant } from '../http/instant.ts'
import { operation } from '../http/operation.ts'
import {
  FileContentQuerySchema,
  FilePieceSchema,
  WorkFilesQuerySchema,
  WorkFilesSchema,
} from './file-schema.ts'
import { logSourceOf } from './log-source.ts'
import { TaskPathSchema } from './schema.ts'

const PROBLEMS = ['not_found', 'conflict', 'node_unavailable', 'too_many_reads', 'store_failed'] as const

const listFiles = operation(
  {
    operationId: 'listFiles',
    role: 'submitter',
    ownersOnly: 'or_admin',
    summary: 'Files in the work folder of the latest attempt of a task',
    description:
      'Available only to the owner of the task and admins, also while the task runs. The GPU server ' +
      'keeps the folder for a day after the task ends (NODE_WORK_RETENTION_SECONDS), up to a size limit.',
    tags: ['tasks'],
    params: TaskPathSchema,
    querystring: WorkFilesQuerySchema,
    response: { 200: WorkFilesSchema },
  },
  PROBLEMS,
)

const readFile = operation(
  {
    operationId: 'readFile',
    role: 'submitter',
    ownersOnly: 'or_admin',
    summary: 'Part of a file in the work folder of the latest attempt of a task',
    description:
      'The path is resolved within the work folder, as the user of the task. A link that leads out of ' +
      'the folder is refused.',
    tags: ['tasks'],
    params: TaskPathSchema,
    querystring: FileContentQuerySchema,
    response: { 200: FilePieceSchema },
  },
  PROBLEMS,
)

export function fileRoutes(app: ApiApp, { views, files, fleet }: ApiContext): void {
  const folderOf = async (
    taskId: string,
  ): Promise<{ readonly files: TaskFiles; readonly folder: WorkFolder }> => {
    const source = await logSourceOf(views, taskId)
    if (fleet === 'simulated')
      throw new ApiProblem('conflict', 'The fleet is simulated: its tasks have no files.')
    if (files === null) throw unavailable('This controller is not connected to GPU servers.')
    if (source === null)
      throw new ApiProblem('conflict', 'The task has not been placed yet, so it has no files.')
    return { files, folder: { ...source, taskId } }
  }

  app.get('/tasks/:task_id/files', { schema: listFiles }, async ({ params, query }) => {
    const { files: reader, folder } = await folderOf(params.task_id)
    const { path = '', after = '', limit = MAX_LISTED_FILES } = query
    const list = answered(await reader.list(folder, { path: trimmed(path), after, maxItems: limit }), path)
    return {
      task_id: list.task_id,
      attempt: list.attempt,
      node_id: folder.nodeId,
      items: list.items.map(({ modified_ms, ...item }) => ({
        ...item,
        modified_at: presentInstant(modified_ms),
      })),
      is_complete: list.is_complete,
    }
  })

  app.get('/tasks/:task_id/files/content', { schema: readFile }, async ({ params, query }) => {
    const { files: reader, folder } = await folderOf(params.task_id)
    const { path, offset = 0, max_bytes: maxBytes = MAX_FILE_BYTES } = query
    const piece = answered(await reader.read(folder, { path: trimmed(path), offset, maxBytes }), path)
    const { task_id, attempt, data, bytes, inode } = piece
    const next_offset = offset + Buffer.byteLength(data, 'base64')
    const modified_at = presentInstant(piece.modified_ms)
    return { task_id, attempt, path, offset, next_offset, data, bytes, modified_at, inode }
  })
}

/** `out/` and `./out` name the folder `out`. */
function trimmed(path: string): string {
  return path
    .replace(/^(\.\/+)+/, '')
    .replace(/\/+$/, '')
    .replace(/^\.$/, '')
}

function answered<T extends object>(answer: FilesAnswer<T>, path: string): T {
  if (answer === null)
    throw unavailable('The GPU server that has the files does not respond. Try again later.')
  if (!('refused' in answer)) return answer
  const { refused } = answer as { readonly refused: string }
  if (refused === 'too_many_reads')
    throw new ApiProblem(
      'too_many_reads',
      'Too many reads are in progress on the GPU server. Try again in 1 s.',
      {
        headers: { 'retry-after': '1' },
      },
    )
  const words = WORDS[refused]
  if (words !== undefined) throw new ApiProblem('conflict', `${JSON.stringify(path)} ${words}`)
  if (refused === 'not_found')
    throw new ApiProblem('not_found', `The work folder does not contain ${JSON.stringify(path)}.`)
  if (refused === 'unknown_attempt')
    throw new ApiProblem(
      'not_found',
      'The GPU server has no files of this attempt: the attempt wrote none, or they were removed after ' +
        'the retention time.',
    )
  throw unavailable(`The GPU server cannot read the path now (${refused}). Try again later.`)
}

const WORDS: Readonly<Record<string, string>> = {
  is_folder: 'is a folder, not a file.',
  not_a_file: 'is not a regular file.',
  outside: 'leads out of the work folder, which is not allowed.',
  not_readable: 'cannot be read by the user of the task.',
}

function unavailable(detail: string): ApiProblem {
  return new ApiProblem('node_unavailable', detail, { headers: { 'retry-after': '5' } })
}
