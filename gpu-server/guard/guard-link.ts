import { closeSync, openSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { GuardFault } from './guard-fault.ts'

const ANSWER_LIMIT_MS = 10_000
const MAX_PENDING_REQUESTS = 32
const LINE_BYTES = 1 << 20
const SOCKET_PATH_BYTES = 100

interface PendingRequest {
  readonly text: string
  readonly resolve: (answer: string) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/** Receives unsolicited lines of a guard: `event …` and, as its last line, `ended …`. */
export interface LinkListener {
  onLine(line: string): void
  onClosed(): void
}

/** The control socket of one guard: one line each way, answers in the order of the requests. */
export class GuardLink {
  readonly #socket: Socket
  readonly #listener: LinkListener
  readonly #pending: PendingRequest[] = []
  #unread = ''

  private constructor(socket: Socket, listener: LinkListener) {
    this.#socket = socket
    this.#listener = listener
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => this.#receive(text))
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#end())
  }

  /**
   * Rejects with the socket's error when nothing listens.
   * @param name `socket`: of the guard; `proxy`: of the proxy of its task, which speaks alike
   */
  static open(folder: string, listener: LinkListener, name = 'socket'): Promise<GuardLink> {
    return new Promise((resolve, reject) => {
      const { path, release } = shortPathOf(folder, name)
      const socket = connect(path)
      socket.once('error', (error) => {
        release()
        reject(error)
      })
      socket.once('connect', () => {
        release()
        socket.removeAllListeners('error')
        resolve(new GuardLink(socket, listener))
      })
    })
  }

  /**
   * Resolves with the text after `ok`. Rejects with GuardFault: the guard refused, ended, or did not answer.
   */
  ask(text: string): Promise<string> {
    if (this.#pending.length >= MAX_PENDING_REQUESTS)
      return Promise.reject(
        new GuardFault(`guard: ${MAX_PENDING_REQUESTS} requests are waiting for an answer`),
      )
    if (this.#socket.destroyed) return Promise.reject(new GuardFault('guard: it has ended'))
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.close(), ANSWER_LIMIT_MS)
      this.#pending.push({ text, resolve, reject, timer })
      this.#socket.write(`${text}\n`)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #receive(text: string): void {
    this.#unread += text
    const lines = this.#unread.split('\n')
    this.#unread = lines.pop() ?? ''
    if (this.#unread.length > LINE_BYTES) this.close()
    for (const line of lines) {
      if (/^(event|ended) /.test(line)) this.#listener.onLine(line)
      else this.#answer(line)
    }
  }

  #answer(line: string): void {
    const question = this.#pending.shift()
    if (question === undefined) return this.close()
    clearTimeout(question.timer)
    if (line === 'ok' || line.startsWith('ok ')) question.resolve(line.slice(3))
    else question.reject(new GuardFault(`guard: ${question.text}: ${line.replace(/^error /, '')}`))
  }

  #end(): void {
    for (const question of this.#pending.splice(0)) {
      clearTimeout(question.timer)
      question.reject(new GuardFault(`guard: ${question.text}: it has ended, or does not answer`))
    }
    this.#listener.onClosed()
  }
}

/** The path of a socket is limited to 108 bytes; a longer folder is addressed through an open file. */
function shortPathOf(folder: string, name: string): { path: string; release: () => void } {
  if (Buffer.byteLength(folder) < SOCKET_PATH_BYTES)
    return { path: `${folder}/${name}`, release: () => undefined }
  const file = openSync(folder, 'r')
  return { path: `/proc/self/fd/${file}/${name}`, release: () => closeSync(file) }
}
