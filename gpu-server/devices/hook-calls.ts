/** Tells a task to move its data out of VRAM or back: by a command in it, a request to it, or its socket. */
import { encodeFrame, endIn, FRAME, FrameReader, type Frame } from '../../protocol/channel-frames.ts'
import type { SwapEngine, SwapHook, SwapHooks } from '../../protocol/message-fields.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { startChannelProcess, type ChannelHost } from '../channels/channel-process.ts'
import type { HookAnswer, HookOrder } from '../core/swap-steps.ts'
import type { TaskSockets } from './task-sockets.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface HookedTask {
  readonly taskId: string
  readonly attempt: number
  readonly start: { readonly swapHooks?: SwapHooks; readonly swapEngine?: SwapEngine }
}

/** Maximum size of an answer; the rest is not read. */
const HEAD_BYTES = 4_096
/** A body that says what stays in VRAM. */
const RESIDENT = /"resident_mib"\s*:\s*(\d{1,8})/

export class HookCalls {
  readonly #host: ChannelHost
  readonly #sockets: Pick<TaskSockets, 'order'>

  constructor(host: ChannelHost, sockets: Pick<TaskSockets, 'order'>) {
    this.#host = host
    this.#sockets = sockets
  }

  /** Never rejects. After the deadline the command is ended, the connection closed. */
  call(task: HookedTask, order: HookOrder, withinMs: DurationMs): Promise<HookAnswer> {
    const { swapHooks, swapEngine } = task.start
    const hook = swapEngine === undefined ? swapHooks?.[order] : requestOf(swapEngine, order)
    if (hook === undefined) return this.#sockets.order(task.taskId, task.attempt, order, withinMs)
    return this.#through(task, hook, withinMs)
  }

  #through({ taskId, attempt }: HookedTask, hook: SwapHook, withinMs: DurationMs): Promise<HookAnswer> {
    const { command, port = 0, path = '/' } = hook
    const started = startChannelProcess(
      this.#host,
      taskId,
      attempt,
      command === undefined ? { kind: 'port', port } : { kind: 'exec', command, terminal: null },
    )
    if ('refused' in started) return Promise.resolve({ error: started.refused })
    const { child, request } = started
    return new Promise((resolve) => {
      const frames = new FrameReader()
      let said = ''
      const settle = (answer: HookAnswer): void => {
        clearTimeout(timer)
        child.kill('SIGKILL')
        resolve(answer)
      }
      const timer = setTimeout(() => settle({ error: 'it did not finish in time', isLate: true }), withinMs)
      const hear = ({ kind, content }: Frame): void => {
        if (kind === FRAME.opened && command === undefined) child.stdin?.write(requestTo(path))
        if (kind === FRAME.data && said.length < HEAD_BYTES) said += Buffer.from(content).toString('latin1')
        const isOver = kind === FRAME.ended || (command === undefined && kind === FRAME.end)
        if (command !== undefined && isOver) settle(answerOfCommand(endIn(content), said))
        else if (command === undefined && (isOver || isWhole(said))) settle(answerOfRequest(said, content))
      }
      child.once('error', (error) => settle({ error: error.message }))
      child.once('close', () => settle({ error: 'the process for it ended', isLate: true }))
      child.stdin?.on('error', () => undefined) // `close` follows
      child.stdout?.on('data', (bytes: Buffer) => {
        try {
          frames.take(bytes).forEach(hear)
        } catch (error) {
          settle({ error: errorText(error) })
        }
      })
      if (request !== null) {
        child.stdin?.write(encodeFrame(FRAME.request, request))
        child.stdin?.write(encodeFrame(FRAME.end, new Uint8Array(0)))
      }
    })
  }
}

/**
 * What tells an engine to sleep and to wake up. Sources: docs.vllm.ai, "Sleep Mode" (needs
 * --enable-sleep-mode and VLLM_SERVER_DEV_MODE=1); docs.sglang.io, "SGLang for RL Systems" (needs
 * --enable-memory-saver).
 */
function requestOf({ kind, port, level = 1 }: SwapEngine, order: HookOrder): SwapHook {
  const paths = {
    vllm: { suspend: `/sleep?level=${level}`, resume: '/wake_up' },
    sglang: { suspend: '/release_memory_occupation', resume: '/resume_memory_occupation' },
  }
  return { port, path: paths[kind][order] }
}

/** SGLang reads a body. */
function requestTo(path: string): Uint8Array {
  const head = [`POST ${path} HTTP/1.1`, 'Host: localhost', 'Content-Type: application/json']
  const lines = [...head, 'Content-Length: 2', 'Connection: close', '', '{}']
  return encodeFrame(FRAME.data, Buffer.from(lines.join('\r\n')))
}

/** The answer has arrived; servers keep connections open. */
function isWhole(said: string): boolean {
  const headEnd = said.indexOf('\r\n\r\n')
  if (headEnd < 0) return false
  const [, length] = /\r\ncontent-length: *(\d{1,9})\r\n/i.exec(said.slice(0, headEnd + 2)) ?? []
  const isBodyless = /^HTTP\/1\.[01] 204/.test(said)
  return (
    isBodyless || (length !== undefined && said.length >= Math.min(HEAD_BYTES, headEnd + 4 + Number(length)))
  )
}

function answerOfRequest(said: string, last: Uint8Array): HookAnswer {
  const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(said) ?? []
  if (status === undefined) {
    const end = endIn(last)
    return {
      error: end.kind === 'cut' && end.why !== '' ? end.why : 'it did not answer the request over HTTP',
    }
  }
  return status.startsWith('2') ? doneAs(said) : { error: `it answered ${status}` }
}

function answerOfCommand(end: ReturnType<typeof endIn>, said: string): HookAnswer {
  switch (end.kind) {
    case 'exit':
      return end.code === 0 ? doneAs(said) : { error: `the command ended with exit code ${end.code}` }
    case 'signal':
      return { error: `the command was ended by signal ${end.number}` }
    case 'closed':
      return { error: 'the command was closed' }
    case 'cut':
      return { error: end.why }
  }
}

function doneAs(said: string): HookAnswer {
  const [, mib] = RESIDENT.exec(said) ?? []
  return { error: null, residentMib: mib === undefined ? null : Number(mib) }
}
