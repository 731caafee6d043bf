import { cudaWords, CUDA_SUCCESS } from './cuda-codes.ts'
import { type ForeignFunction, type ForeignLibrary } from './foreign-library.ts'
import { HelperFault } from './helper-messages.ts'

const OUT = 'void *'
/** Length of each argument structure of the checkpoint functions; unused bytes must be zero. */
export const ARGUMENT_BYTES = 64

/**
 * The driver's checkpoint functions (CUDA driver API, "CUDA Checkpointing"; in libcuda from driver 570 on).
 * Runs inside a helper process: `cuInit` attaches to every GPU of the host, which takes seconds. The target
 * process does the copying itself, in a thread of the driver.
 */
export class CheckpointCalls {
  readonly #init: ForeignFunction
  readonly #getState: ForeignFunction
  readonly #getRestoreThread: ForeignFunction
  readonly #lock: ForeignFunction
  readonly #checkpoint: ForeignFunction
  readonly #restore: ForeignFunction
  readonly #unlock: ForeignFunction
  #attached: Promise<void> | null = null

  constructor(library: ForeignLibrary) {
    this.#init = library.need('cuInit', ['uint32_t'])
    this.#getState = library.need('cuCheckpointProcessGetState', ['int', OUT])
    this.#getRestoreThread = library.need('cuCheckpointProcessGetRestoreThreadId', ['int', OUT])
    this.#lock = library.need('cuCheckpointProcessLock', ['int', OUT])
    this.#checkpoint = library.need('cuCheckpointProcessCheckpoint', ['int', OUT])
    this.#restore = library.need('cuCheckpointProcessRestore', ['int', OUT])
    this.#unlock = library.need('cuCheckpointProcessUnlock', ['int', OUT])
  }

  attach(): Promise<void> {
    this.#attached ??= this.#init(0).then((code) => check('cuInit', code))
    return this.#attached
  }

  /** CUprocessState as a number. */
  async state(pid: number): Promise<number> {
    const state = Buffer.alloc(4)
    check('cuCheckpointProcessGetState', await this.#getState(pid, state))
    return state.readUInt32LE()
  }

  /** Fails for a process that has not initialized CUDA. */
  async restoreThread(pid: number): Promise<number> {
    const thread = Buffer.alloc(4)
    check('cuCheckpointProcessGetRestoreThreadId', await this.#getRestoreThread(pid, thread))
    return thread.readInt32LE()
  }

  /**
   * Waits up to `timeoutMs` (above 0: 0 would mean no limit) until the process reaches a point where it can
   * be locked.
   */
  async lock(pid: number, timeoutMs: number): Promise<void> {
    const args = Buffer.alloc(ARGUMENT_BYTES)
    args.writeUInt32LE(Math.max(1, timeoutMs))
    check('cuCheckpointProcessLock', await this.#lock(pid, args))
  }

  async checkpoint(pid: number): Promise<void> {
    check('cuCheckpointProcessCheckpoint', await this.#checkpoint(pid, Buffer.alloc(ARGUMENT_BYTES)))
  }

  async restore(pid: number): Promise<void> {
    check('cuCheckpointProcessRestore', await this.#restore(pid, Buffer.alloc(ARGUMENT_BYTES)))
  }

  async unlock(pid: number): Promise<void> {
    check('cuCheckpointProcessUnlock', await this.#unlock(pid, Buffer.alloc(ARGUMENT_BYTES)))
  }
}

/** Throws HelperFault. */
export function check(name: string, code: number): void {
  if (code === CUDA_SUCCESS) return
  throw new HelperFault({ kind: 'driver', message: `${name}: ${cudaWords(code)}`, code })
}
