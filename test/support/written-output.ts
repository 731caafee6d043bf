/** Output of tasks, as a GPU server keeps it: a test can write and read it, and make it silent or refuse. */
import type { LogChunk, LogStream } from '../../protocol/messages.ts'
import type { TaskLogs } from '../../controller/ports/task-logs.ts'

export class WrittenOutput implements TaskLogs {
  readonly #bytes = new Map<string, Buffer>()
  readonly #ended = new Set<string>()
  /** null gives no answer, a text is the reason of a refusal. */
  trouble: string | null | undefined = undefined
  reads = 0
  readonly readsOf = new Map<string, number>()
  /** Earlier output is no longer kept. */
  keptFrom = 0

  write(taskId: string, stream: LogStream, text: string | Buffer, attempt = 1): void {
    const key = `${taskId} ${attempt} ${stream}`
    this.#bytes.set(key, Buffer.concat([this.#bytes.get(key) ?? Buffer.alloc(0), Buffer.from(text)]))
  }

  end(taskId: string, attempt = 1): void {
    this.#ended.add(`${taskId} ${attempt}`)
  }

  async read(
    _nodeId: string,
    taskId: string,
    attempt: number,
    stream: LogStream,
    offset: number,
    maxBytes: number,
  ) {
    this.reads += 1
    this.readsOf.set(taskId, (this.readsOf.get(taskId) ?? 0) + 1)
    if (this.trouble === null) return null
    if (this.trouble !== undefined) return { refused: this.trouble }
    const all = this.#bytes.get(`${taskId} ${attempt} ${stream}`) ?? Buffer.alloc(0)
    const from = Math.max(offset, this.keptFrom)
    const chunk: LogChunk = {
      op: 'log',
      task_id: taskId,
      attempt,
      stream,
      offset: from,
      data: all.subarray(from, from + maxBytes).toString('base64'),
      is_ended: this.#ended.has(`${taskId} ${attempt}`),
    }
    return chunk
  }
}
