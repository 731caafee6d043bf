/** Reads work folders from the servers that have them (protocol, `list_files` and `read_file`). */
import { whyNoPath } from '../../protocol/manifest.ts'
import type { TaskFiles } from '../ports/task-files.ts'
import type { NodeReads } from './node-reads.ts'

const BAD_ANSWER = { refused: 'bad_answer' } as const

/** An answer of a server is hostile input: its paths must be below the folder. */
export function createTaskFiles(reads: NodeReads): TaskFiles {
  return {
    async list({ nodeId, taskId, attempt }, { path, after, maxItems }) {
      const asked = { op: 'list_files', task_id: taskId, attempt, path, after, max_items: maxItems } as const
      const answer = await reads.ask(nodeId, asked)
      if (answer === null || 'refused' in answer) return answer
      const isOurs = answer.op === 'files' && answer.task_id === taskId && answer.attempt === attempt
      if (!isOurs || answer.items.length > maxItems) return BAD_ANSWER
      return answer.items.every((item) => whyNoPath(item.path) === null) ? answer : BAD_ANSWER
    },
    async read({ nodeId, taskId, attempt }, { path, offset, maxBytes }) {
      const asked = { op: 'read_file', task_id: taskId, attempt, path, offset, max_bytes: maxBytes } as const
      const answer = await reads.ask(nodeId, asked)
      if (answer === null || 'refused' in answer) return answer
      const isOurs = answer.op === 'file' && answer.task_id === taskId && answer.attempt === attempt
      if (!isOurs || answer.path !== path || answer.offset !== offset) return BAD_ANSWER
      return answer.data.length <= 4 * Math.ceil(maxBytes / 3) ? answer : BAD_ANSWER
    },
  }
}
