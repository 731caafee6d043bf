/** Reads a task's output from its server (protocol, `read_log`). */
import type { LogChunk, ReadLog } from '../../protocol/messages.ts'
import type { TaskLogs } from '../ports/task-logs.ts'
import type { NodeReads } from './node-reads.ts'

export function createTaskLogs(reads: NodeReads): TaskLogs {
  return {
    async read(nodeId, taskId, attempt, stream, offset, maxBytes) {
      const asked: ReadLog = { op: 'read_log', task_id: taskId, attempt, stream, offset, max_bytes: maxBytes }
      const answer = await reads.ask(nodeId, asked)
      if (answer === null || 'refused' in answer) return answer
      return answer.op === 'log' && isAnswerTo(asked, answer) ? answer : { refused: 'bad_answer' }
    },
    async readRecord(nodeId, taskId, attempt) {
      const answer = await reads.ask(nodeId, { op: 'read_attempt', task_id: taskId, attempt })
      if (answer === null || 'refused' in answer || answer.op !== 'attempt') return null
      return answer.task_id === taskId && answer.attempt === attempt ? answer : null
    },
    async expectProcess(nodeId, taskId, attempt, tokenSha256) {
      const asked = { op: 'expect_process', task_id: taskId, attempt, token_sha256: tokenSha256 } as const
      const answer = await reads.ask(nodeId, asked)
      if (answer === null || 'refused' in answer) return answer
      const isAnswer =
        answer.op === 'process_expected' && answer.task_id === taskId && answer.attempt === attempt
      return isAnswer ? { socket: answer.socket } : { refused: 'bad_answer' }
    },
  }
}

function isAnswerTo(asked: ReadLog, answer: LogChunk): boolean {
  const isOfTask =
    answer.task_id === asked.task_id && answer.attempt === asked.attempt && answer.stream === asked.stream
  // An offset beyond the end is answered with the end and no data.
  const isPlace = answer.offset >= asked.offset || answer.data === ''
  return isOfTask && isPlace && answer.data.length <= 4 * Math.ceil(asked.max_bytes / 3)
}
