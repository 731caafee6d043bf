import { constants } from 'node:os'
import { HelperFault } from './helper-messages.ts'
import { type ForeignCall, loadDirectly } from './foreign-library.ts'

/** ptrace(2), <sys/ptrace.h>. Equal on every CPU architecture of Linux. */
const PTRACE_DETACH = 17
const PTRACE_SEIZE = 0x4206
const PTRACE_INTERRUPT = 0x4207
/** waitpid(2): includes threads of other processes, and does not wait. */
const WAIT_ANY_THREAD = 0x4000_0000 | 1

/**
 * ptrace operations on a thread. All calls must come from one OS thread, so they are made directly and not in
 * a thread pool; none of them blocks.
 */
export class TraceCalls {
  readonly #ptrace: ForeignCall
  readonly #waitpid: ForeignCall

  private constructor(ptrace: ForeignCall, waitpid: ForeignCall) {
    this.#ptrace = ptrace
    this.#waitpid = waitpid
  }

  /** Rejects with HelperFault. */
  static async load(ffiModule: string): Promise<TraceCalls> {
    const need = await loadDirectly('libc.so.6', ffiModule)
    return new TraceCalls(
      need('ptrace', 'long', ['long', 'int', 'void *', 'void *']),
      need('waitpid', 'int', ['int', 'void *', 'int']),
    )
  }

  /** False: the thread has ended. Throws when it may not be traced. */
  seize(thread: number): boolean {
    return this.#request('seize', PTRACE_SEIZE, thread)
  }

  interrupt(thread: number): boolean {
    return this.#request('interrupt', PTRACE_INTERRUPT, thread)
  }

  /** A thread of a process that received SIGSTOP meanwhile stays stopped. */
  detach(thread: number): boolean {
    return this.#request('detach', PTRACE_DETACH, thread)
  }

  /** Returns true once an interrupted thread has stopped or ended. */
  hasStopped(thread: number): boolean {
    const { result, errno } = this.#waitpid(thread, Buffer.alloc(4), WAIT_ANY_THREAD)
    return result === thread || (result < 0 && errno === constants.errno.ECHILD)
  }

  #request(what: string, request: number, thread: number): boolean {
    const { result, errno } = this.#ptrace(request, thread, null, null)
    if (result >= 0) return true
    if (errno === constants.errno.ESRCH) return false
    const name = Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? String(errno)
    throw new HelperFault({
      kind: 'not_traceable',
      message: `thread ${thread} cannot be stopped: ptrace ${what}: ${name}`,
      code: null,
    })
  }
}
