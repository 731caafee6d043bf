import type { DurationMs, Mib } from '../../../protocol/units.ts'
import { HelperFault } from './helper-messages.ts'
import type { HelperProcess } from './helper-process.ts'
import { KeyQueue } from './key-queue.ts'

/**
 * `moving`: the driver is copying. `failed`: it has lost the process. Null: it does not know the process, or
 * a state of it that we don't.
 */
export type ProcessState = 'running' | 'locked' | 'checkpointed' | 'failed' | 'moving'

export type Action = 'lock' | 'checkpoint' | 'restore' | 'unlock'

/** CUprocessState; the last two exist in drivers that came later. */
const STATES: readonly ProcessState[] = ['running', 'locked', 'checkpointed', 'failed', 'moving', 'moving']

/** Where an action leads. A restored process is still locked. */
const LEADS_TO: Readonly<Record<Action, ProcessState>> = {
  lock: 'locked',
  checkpoint: 'checkpointed',
  restore: 'locked',
  unlock: 'running',
}

export interface CheckpointTimeouts {
  /** The helper's first call; the driver attaches to every GPU. */
  readonly attachMs: DurationMs
  /** Asking for a state. */
  readonly stateMs: DurationMs
  /** How long the driver waits for a process to come to a place where it can be held. */
  readonly lockMs: DurationMs
  /** For any action, on top of what its copying and waiting may take. */
  readonly actionMs: DurationMs
  /** Below this speed a copy counts as hung. */
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
 * Moves processes between the states of the checkpoint API through the one helper; never two actions on one
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

  /** Null, or why nothing can be checkpointed on this host now. */
  async attach(): Promise<HelperFault | null> {
    return (await this.#ask('attach', {}, this.#timeouts.attachMs)).fault
  }

  /** The fault of a process that has not initialized CUDA, or may not be touched; else null. */
  async probe(pid: number): Promise<HelperFault | null> {
    return (await this.#asked('restore_thread', pid, this.#timeouts.stateMs)).fault
  }

  async state(pid: number): Promise<ProcessState | null> {
    const { value } = await this.#asked('state', pid, this.#timeouts.stateMs)
    return typeof value === 'number' ? (STATES[value] ?? null) : null
  }

  /** Null when the process is where the action leads. `mib`: what is to be copied. */
  act(action: Action, pid: number, mib: Mib): Promise<HelperFault | null> {
    return this.#queue.run([pid], async () => {
      const timeoutMs = this.#timeoutMs(action, mib)
      const { fault } = await this.#asked(action, pid, timeoutMs)
      if (fault === null || (fault.kind !== 'timeout' && fault.kind !== 'lost')) return fault
      // Nobody has heard how it went on; the process itself knows.
      return (await this.#settled(pid, timeoutMs)) === LEADS_TO[action] ? null : fault
    })
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
      case 'restore':
        return this.#timeouts.actionMs + Math.ceil((mib * 1000) / this.#timeouts.slowestMibPerS)
      case 'unlock':
        return this.#timeouts.actionMs
    }
  }

  /** A helper that has just been started attaches first, in the time that this may take. */
  async #asked(op: string, pid: number, timeoutMs: DurationMs): Promise<Asked> {
    const attached = await this.attach()
    if (attached !== null) return { value: null, fault: attached }
    return this.#ask(op, op === 'lock' ? { pid, timeoutMs: this.#timeouts.lockMs } : { pid }, timeoutMs)
  }

  async #ask(op: string, args: { pid?: number; timeoutMs?: number }, timeoutMs: DurationMs): Promise<Asked> {
    try {
      return { value: await this.#helper.request(op, args, timeoutMs), fault: null }
    } catch (fault) {
      if (fault instanceof HelperFault) return { value: null, fault }
      throw fault
    }
  }
}

type Asked =
  { readonly value: unknown; readonly fault: null } | { readonly value: null; readonly fault: HelperFault }
