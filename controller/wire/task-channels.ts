/**
 * Channels into tasks over the bus (protocol, `open_channel`). No input of the engine: nothing is decided,
 * and the bytes are in no recording.
 */
import { MAX_CHANNEL_BYTES } from '../../protocol/limits.ts'
import type { TaskChannels } from '../ports/task-channels.ts'
import type { NodeReads } from './node-reads.ts'

const BAD_ANSWER = { refused: 'bad_answer' } as const

/** An answer of a server is hostile input: it must be about the channel, and continue it. */
export function createTaskChannels(requests: NodeReads): TaskChannels {
  return {
    async open({ nodeId, taskId: task_id, attempt }, channel, target) {
      const asked = { op: 'open_channel', task_id, attempt, channel, target } as const
      const answer = await requests.ask(nodeId, asked)
      if (answer === null || 'refused' in answer) return answer
      return answer.op === 'channel_opened' && answer.channel === channel ? 'opened' : BAD_ANSWER
    },
    async write(nodeId, channel, n, data) {
      const answer = await requests.ask(nodeId, { op: 'write_channel', channel, n, data })
      if (answer === null || 'refused' in answer) return answer
      const isOurs = answer.op === 'channel_written' && answer.channel === channel && answer.n === n
      return isOurs ? 'written' : BAD_ANSWER
    },
    async read(nodeId, channel, after) {
      const answer = await requests.ask(nodeId, { op: 'read_channel', channel, after })
      if (answer === null || 'refused' in answer) return answer
      if (answer.op !== 'channel_data' || answer.channel !== channel) return BAD_ANSWER
      const { n, data, is_ended: isEnded } = answer
      const isNext = data === '' ? n === after || isEnded : n === after + 1
      const isShort = data.length <= 4 * Math.ceil(MAX_CHANNEL_BYTES / 3)
      return isNext && isShort ? { n, data, isEnded } : BAD_ANSWER
    },
    close: (nodeId, channel) => requests.publish(nodeId, { op: 'close_channel', channel }),
  }
}
