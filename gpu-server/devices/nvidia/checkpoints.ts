import type { DurationMs, Mib } from '../../../protocol/units.ts'
import { HelperFault, type HelperRequest } from './helper-messages.ts'
import type { HelperProcess } from './helper-process.ts'
import { KeyQueue } from './key-queue.ts'

/**
 * `moving`: the driver is copying. `failed`: the driver has lost the process. Null: the driver does not know
 * the process, or reports an unknown state.
 */
export type ProcessState = 'running' | 'locked' | 'checkpointed' | 'failed' | 'moving'

/** `store` is a checkpoint into the swap arena. A restore takes the bytes from where they are. */
export type Action = 'lock' | 'checkpoint' | 'store' | 'restore' | 'unlock'

/** CUprocessState; the last two exist only in later drivers. */
const STATES: readonly ProcessState[] = ['running', 'locked', 'checkpointed', 'failed', 'moving', 'moving']

/** The state after each action. A restored process is still locked. */
const LEADS_TO: Readonly<Record<Action, ProcessState>> = {
  lock: 'locked',
  checkpoint: 'checkpointed',
  store: 'checkpointed',
  restore: 'locked',
  unlock: 'running',
}

export interface CheckpointTimeouts {
  /** The helper's first call; the driver attaches to every GPU. */
  readonly attachMs: DurationMs
  /** Reading a state. */
  readonly stateMs: DurationMs
  /** Time for the process to reach a point where it can be locked. */
  readonly lockMs: DurationMs
  /** Time limit of any action, in addition to its copying and waiting. */
  readonly actionMs: DurationMs
  /** A slower copy counts as hung. */
  readonly slowestMibPerS: number
}

export const CHECKPOINT_TIMEOUTS: CheckpointTimeouts = {
  attachMs: 60_000,
  stateMs: 10_000,
  lockMs: 10_000,
  actionMs: 60_000,
  slowestMibPerS: 256,
}

const SETTLE_POLL_MS = 200

/**
 * Moves processes between the states of the checkpoint API through the one helper, with one action per
 * process at a time.
 */
export class Checkpoints {
  readonly #helper: HelperProcess
  readonly #timeouts: CheckpointTimeouts
  readonly #queue = new KeyQueue<number>()

  constructor(helper: HelperProcess, timeouts: CheckpointTimeouts) {
    this.#helper = helper
    this.#timeouts = timeouts
  }

  /** Returns null, or why nothing can be checkpointed on this host now. */
  async attach(): Promise<HelperFault | null> {
    return (await this.#ask('attach', {}, this.#timeouts.attachMs)).fault
  }

  /** Returns the fault of a process that has not initialized CUDA or may not be accessed; else null. */
  async probe(pid: number): Promise<HelperFault | null> {
    return (await this.#asked('restore_thread', pid, this.#timeouts.stateMs)).fault
  }

  async state(pid: number): Promise<ProcessState | null> {
    const { value } = await this.#asked('state', pid, this.#timeouts.stateMs)
    return typeof value === 'number' ? (STATES[value] ?? null) : null
  }

  /**
   * Returns null when the process reaches the target state.
   * @param mib amount to copy
   */
  act(action: Action, pid: number, mib: Mib): Promise<HelperFault | null> {
    return this.#queue.run([pid], async () => {
      const timeoutMs = this.#timeoutMs(action, mib)
      const { fault } = await this.#asked(action, pid, timeoutMs)
      if (fault === null || (fault.kind !== 'timeout' && fault.kind !== 'lost')) return fault
      // The outcome is not known; the state of the process decides.
      return (await this.#settled(pid, timeoutMs)) === LEADS_TO[action] ? null : fault
    })
  }

  /** Returns null, or why nothing can be stored in the swap arena. */
  async openArena(): Promise<HelperFault | null> {
    return (await this.attach()) ?? (await this.#ask('open_arena', {}, this.#timeouts.attachMs)).fault
  }

  /**
   * Takes room in the swap arena for a `store`; false: it has no room.
   * @param mibs by GPU
   * @param freshMib host memory that the arena may still take
   */
  async reserve(pid: number, mibs: readonly Mib[], freshMib: Mib): Promise<boolean | HelperFault> {
    const timeoutMs = this.#copyTimeoutMs(mibs.reduce((sum, mib) => sum + mib, 0))
    const { value, fault } = await this.#asked('reserve', pid, timeoutMs, { mibs, freshMib })
    return fault ?? value === true
  }

  /** Releases a reservation that is not followed by a `store`. */
  async unreserve(pid: number): Promise<void> {
    await this.#asked('unreserve', pid, this.#timeouts.stateMs)
  }

  /** Process id of the helper while it runs. */
  get helperPid(): number | null {
    return this.#helper.pid
  }

  async #settled(pid: number, timeoutMs: DurationMs): Promise<ProcessState | null> {
    for (let waitedMs = 0; ; waitedMs += SETTLE_POLL_MS) {
      const state = await this.state(pid)
      if (state !== 'moving' || waitedMs >= timeoutMs) return state
      await new Promise((resolve) => setTimeout(resolve, SETTLE_POLL_MS))
    }
  }

  #timeoutMs(action: Action, mib: Mib): DurationMs {
    switch (action) {
      case 'lock':
        return this.#timeouts.actionMs + this.#timeouts.lockMs
      case 'checkpoint':
      case 'store':
      case 'restore':
        return this.#copyTimeoutMs(mib)
      case 'unlock':
        return this.#timeouts.actionMs
    }
  }

  #copyTimeoutMs(mib: Mib): DurationMs {
    return this.#timeouts.actionMs + Math.ceil((mib * 1000) / this.#timeouts.slowestMibPerS)
  }

  /** A new helper attaches first, within the time limit of attaching. */
  async #asked(op: string, pid: number, timeoutMs: DurationMs, args: Arguments = {}): Promise<Asked> {
    const attached = await this.attach()
    if (attached !== null) return { value: null, fault: attached }
    const limit = op === 'lock' ? { timeoutMs: this.#timeouts.lockMs } : {}
    return this.#ask(op, { ...args, pid, ...limit }, timeoutMs)
  }

  async #ask(op: string, args: Arguments, timeoutMs: DurationMs): Promise<Asked> {
    try {
      return { value: await this.#helper.request(op, args, timeoutMs), fault: null }
    } catch (fault) {
      if (fault instanceof HelperFault) return { value: null, fault }
      throw fault
    }
  }
}

type Arguments = Omit<HelperRequest, 'id' | 'op'>
type Asked =
  { readonly value: unknown; readonly fault: null } | { readonly value: null; readonly fault: HelperFault }
