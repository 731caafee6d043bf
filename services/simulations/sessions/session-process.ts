/** The controller's side of a session: conversations with its process. */
import type {
  Debrief,
  ExerciseView,
  ForwardedAnswer,
  ForwardedRequest,
  ScenarioProblem,
  SessionCommand,
  SessionFault,
  SessionView,
} from '../../../controller/ports/simulation.ts'
import { workerUrl } from '../../workers/worker-url.ts'
import { LIMITS } from '../library/limits.ts'
import type { Branch } from './session-host.ts'
import type { FromSession, SessionJob, ToSession } from './session-messages.ts'
import { WorkerFault, WorkerProcess } from '../../workers/worker-process.ts'

type PendingReply = (message: FromSession) => void
type Unnumbered<T> = T extends unknown ? Omit<T, 'n'> : never

export class SessionProcess {
  readonly #worker: WorkerProcess
  readonly #pending = new Map<number, PendingReply>()
  readonly #onOver: (fault: WorkerFault) => void
  #n = 0
  #isEnded = false
  #fault: WorkerFault | null = null

  /** @param onOver called when the process has ended, by itself or by `end` */
  constructor(
    onProgress: (virtualMs: number, endMs: number | null) => void,
    onOver: (fault: WorkerFault) => void,
  ) {
    this.#onOver = onOver
    this.#worker = new WorkerProcess(workerUrl('simulations/sessions/session-worker'), {
      heapMib: LIMITS.heapMib,
    })
    const heard = (message: FromSession): void => {
      if (message.kind === 'progress') onProgress(message.virtualMs, message.endMs)
      else this.#pending.get(message.n)?.(message)
    }
    this.#worker.listen({
      onMessage: (message) => heard(message as FromSession),
      onEnd: (fault) => this.#over(this.#isEnded ? new WorkerFault('The session has ended.') : fault),
    })
  }

  /** Rejects with the error of the session, by name, or with WorkerFault. */
  open(job: SessionJob): Promise<SessionView> {
    return this.#view({ kind: 'open', job })
  }

  control(command: SessionCommand): Promise<SessionView> {
    return this.#view({ kind: 'control', command })
  }

  async branch(snapshot: string | null): Promise<Branch> {
    const answer = await this.#once({ kind: 'branch', snapshot })
    if (answer.kind !== 'branch') throw new Error('unexpected answer of the session')
    return answer.branch
  }

  /** @param entry a list of one fault, as text */
  async injectFault(
    entry: string,
    isHidden: boolean,
    by: string | null,
  ): Promise<readonly SessionFault[] | { readonly problems: readonly ScenarioProblem[] }> {
    const answer = await this.#once({ kind: 'break', entry, isHidden, by })
    if (answer.kind === 'problems') return { problems: answer.problems }
    if (answer.kind !== 'faults') throw new Error('unexpected answer of the session')
    return answer.faults
  }

  async faults(): Promise<readonly SessionFault[]> {
    const answer = await this.#once({ kind: 'faults' })
    if (answer.kind !== 'faults') throw new Error('unexpected answer of the session')
    return answer.faults
  }

  async exercise(): Promise<ExerciseView> {
    return viewIn(await this.#once({ kind: 'exercise' }))
  }

  async answer(question: string, value: string | number, by: string | null): Promise<ExerciseView> {
    return viewIn(await this.#once({ kind: 'answer', question, value, by }))
  }

  async finish(): Promise<Debrief> {
    const answer = await this.#once({ kind: 'finish' })
    if (answer.kind !== 'debrief') throw new Error('unexpected answer of the session')
    return answer.debrief
  }

  async ask(request: ForwardedRequest): Promise<ForwardedAnswer> {
    const n = this.#number()
    const pieces = new Pieces((kind) => this.#post({ n, kind }))
    return new Promise((resolve, reject) => {
      this.#pending.set(n, (message) => {
        if (message.kind === 'head')
          resolve({ status: message.status, headers: message.headers, body: pieces })
        else if (message.kind === 'piece') pieces.add(message.bytes)
        else {
          this.#pending.delete(n)
          pieces.end()
          if (message.kind === 'failed') reject(errorOf(message))
        }
      })
      this.#post({ n, kind: 'ask', request })
    })
  }

  async end(): Promise<void> {
    this.#isEnded = true
    await this.#worker.stop()
  }

  async #view(message: Unnumbered<ToSession>): Promise<SessionView> {
    const answer = await this.#once(message)
    if (answer.kind !== 'view') throw new Error('unexpected answer of the session')
    return answer.view
  }

  #once(message: Unnumbered<ToSession>): Promise<FromSession> {
    const n = this.#number()
    return new Promise((resolve, reject) => {
      this.#pending.set(n, (answer) => {
        this.#pending.delete(n)
        if (answer.kind === 'failed') reject(errorOf(answer))
        else resolve(answer)
      })
      this.#post({ ...message, n } as ToSession)
    })
  }

  #number(): number {
    if (this.#fault !== null) throw this.#fault
    return (this.#n += 1)
  }

  #post(message: ToSession): void {
    if (this.#fault === null) this.#worker.post(message)
  }

  /** Rejects all pending requests. */
  #over(fault: WorkerFault): void {
    if (this.#fault !== null) return
    this.#fault = fault
    const { name, message, stack } = fault
    for (const [n, heard] of this.#pending) heard({ n, kind: 'failed', name, message, stack })
    this.#onOver(fault)
  }
}

function viewIn(answer: FromSession): ExerciseView {
  if (answer.kind !== 'exercise') throw new Error('unexpected answer of the session')
  return answer.view
}

/** The body of an answer: each piece is requested when the reader is ready for it. */
class Pieces implements AsyncIterable<Uint8Array> {
  readonly #onConsumed: (kind: 'more' | 'enough') => void
  readonly #waiting: Uint8Array[] = []
  #isEnded = false
  #wake: () => void = () => {}

  constructor(tell: (kind: 'more' | 'enough') => void) {
    this.#onConsumed = tell
  }

  add(bytes: Uint8Array): void {
    this.#waiting.push(bytes)
    this.#wake()
  }

  end(): void {
    this.#isEnded = true
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        if (this.#waiting.length === 0 && !this.#isEnded) {
          this.#onConsumed('more')
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
        }
        const next = this.#waiting.shift()
        if (next !== undefined) yield next
        else if (this.#isEnded) return
      }
    } finally {
      if (!this.#isEnded) this.#onConsumed('enough')
    }
  }
}

function errorOf({
  name,
  message,
  stack,
}: {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
}): Error {
  if (name === 'WorkerFault') return new WorkerFault(message)
  const error = new Error(message)
  error.name = name
  if (stack !== undefined) error.stack = stack
  return error
}
