/**
 * Reads a task's output from its server: a request without side effects, sent once; the caller retries
 * (protocol, `read_log`).
 */
import type { ControllerBody, Envelope } from '../../protocol/envelope.ts'
import type { LogChunk, ReadLog } from '../../protocol/messages.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Bus } from '../ports/bus.ts'
import type { TaskLogs } from '../ports/task-logs.ts'

const ANSWER_WITHIN_MS: DurationMs = 3_000
/**
 * Maximum number of concurrent reads per server; more are refused, so that commands are not delayed (R11).
 */
const MAX_READS_PER_NODE = 8

/** @param mayAsk returns false for a node that is ahead of the store: nothing is sent to it */
export function createTaskLogs(
  bus: Bus,
  envelope: (body: ControllerBody) => Envelope,
  mayAsk: (nodeId: string) => boolean,
): TaskLogs {
  const underWay = new Map<string, number>()
  const count = (nodeId: string, by: number): void => {
    const reads = (underWay.get(nodeId) ?? 0) + by
    if (reads === 0) underWay.delete(nodeId)
    else underWay.set(nodeId, reads)
  }
  return {
    read(nodeId, taskId, attempt, stream, offset, maxBytes) {
      if (!mayAsk(nodeId)) return Promise.resolve(null)
      if ((underWay.get(nodeId) ?? 0) >= MAX_READS_PER_NODE)
        return Promise.resolve({ refused: 'too_many_reads' })
      const asked: ReadLog = { op: 'read_log', task_id: taskId, attempt, stream, offset, max_bytes: maxBytes }
      count(nodeId, 1)
      return new Promise((resolve) => {
        bus.request(nodeSubject(nodeId, 'command'), envelope(asked), ANSWER_WITHIN_MS, (outcome) => {
          count(nodeId, -1)
          if (!outcome.answered) return resolve(null)
          const { body } = outcome.answer
          if (body.op === 'refused') return resolve({ refused: body.reason })
          resolve(body.op === 'log' && isAnswerTo(asked, body) ? body : { refused: 'bad_answer' })
        })
      })
    },
    readRecord: (nodeId, taskId, attempt) =>
      new Promise((resolve) => {
        if (!mayAsk(nodeId)) return resolve(null)
        const asked = envelope({ op: 'read_attempt', task_id: taskId, attempt })
        bus.request(nodeSubject(nodeId, 'command'), asked, ANSWER_WITHIN_MS, (outcome) => {
          const body = outcome.answered ? outcome.answer.body : null
          resolve(body?.op === 'attempt' && body.task_id === taskId && body.attempt === attempt ? body : null)
        })
      }),
  }
}

function isAnswerTo(asked: ReadLog, answer: LogChunk): boolean {
  const isOfTask =
    answer.task_id === asked.task_id && answer.attempt === asked.attempt && answer.stream === asked.stream
  return isOfTask && answer.offset >= asked.offset && answer.data.length <= 4 * Math.ceil(asked.max_bytes / 3)
}
