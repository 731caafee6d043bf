/** The control sockets of this host's tasks, and the allocations that wait on them. */
import { createHash } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Mib } from '../../protocol/units.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { LineSocket, SendLine } from './line-socket.ts'
import { openControlSocket } from './control-socket.ts'
import type { HookAnswer, HookOrder } from '../core/swap-steps.ts'

export interface TaskSocketsListener {
  busy(taskId: string, attempt: number, isBusy: boolean): void
  /** Answered through `answer`. */
  allocationWanted(taskId: string, attempt: number, mib: Mib): void
}

interface Waiting {
  readonly mib: Mib
  readonly answer: (isGranted: boolean) => void
}

interface Order {
  readonly order: HookOrder
  readonly send: (to: SendLine) => void
  readonly settle: (answer: HookAnswer) => void
}

interface OpenSocket {
  readonly socket: LineSocket
  readonly waiting: Waiting[]
  /** Takes the orders of its hooks; null: no connection does. */
  hooks: SendLine | null
  /** The order that is not carried out yet. */
  order: Order | null
}

/** So long an order waits for a process that takes it. */
const CONNECT_MS: DurationMs = 5_000
const NO_PROCESS: HookAnswer = { error: 'none of its processes handles swap commands on the control socket' }
const NAME_LENGTH = 20
/** The kernel's limit without the terminating zero. */
const MAX_PATH_BYTES = 107

export class TaskSockets {
  readonly #folder: string
  readonly #groupOf: (taskId: string, attempt: number) => number | null
  readonly #listener: TaskSocketsListener
  readonly #open = new Map<string, OpenSocket>()

  /**
   * Throws when the folder cannot be used.
   * @param groupOf the group whose members may connect to the socket of an attempt; null: only the server's
   * user
   */
  constructor(
    folder: string,
    groupOf: (taskId: string, attempt: number) => number | null,
    listener: TaskSocketsListener,
  ) {
    const longest = Buffer.byteLength(join(folder, `${'0'.repeat(NAME_LENGTH)}.sock`))
    if (longest > MAX_PATH_BYTES) {
      throw new Error(
        `${folder}: the path of a socket in it has ${longest} bytes; the limit is ${MAX_PATH_BYTES}. ` +
          'Choose a shorter state folder.',
      )
    }
    this.#folder = folder
    this.#groupOf = groupOf
    this.#listener = listener
    mkdirSync(folder, { recursive: true })
    // Tasks of another user can open their sockets but not list the folder.
    chmodSync(folder, 0o711)
  }

  /** Equal at every start of the server. */
  pathOf(taskId: string, attempt: number): string {
    const name = createHash('sha256').update(`${attempt} ${taskId}`).digest('hex').slice(0, NAME_LENGTH)
    return join(this.#folder, `${name}.sock`)
  }

  /** Resolves with its path when it listens; rejects when it cannot be made. */
  async open(taskId: string, attempt: number): Promise<string> {
    const path = this.pathOf(taskId, attempt)
    this.close(taskId, attempt)
    const waiting: Waiting[] = []
    const socket = await openControlSocket(
      path,
      this.#groupOf(taskId, attempt),
      {
        busy: (isBusy) => this.#listener.busy(taskId, attempt, isBusy),
        wanted: () => this.#listener.busy(taskId, attempt, true),
        allocate: (mib, answer) => {
          waiting.push({ mib, answer })
          this.#listener.allocationWanted(taskId, attempt, mib)
        },
        swaps: (send) => {
          const open = this.#open.get(path)
          if (open === undefined) return
          open.hooks = send
          open.order?.send(send)
        },
        left: (send) => {
          const open = this.#open.get(path)
          if (open === undefined || open.hooks !== send) return
          open.hooks = null
          open.order?.settle({ error: 'it closed the connection for swap commands', isLate: true })
        },
        hookDone: (send, order, residentMib) => {
          const open = this.#open.get(path)
          if (open?.hooks === send && open.order?.order === order)
            open.order.settle({ error: null, residentMib })
        },
      },
      chownSync,
    )
    this.#open.set(path, { socket, waiting, hooks: null, order: null })
    return path
  }

  /** Tells the task to move its data out of VRAM, or back. An earlier order that is not done is void. */
  order(taskId: string, attempt: number, order: HookOrder, withinMs: DurationMs): Promise<HookAnswer> {
    const open = this.#open.get(this.pathOf(taskId, attempt))
    if (open === undefined) return Promise.resolve({ error: 'it has no control socket' })
    open.order?.settle({ error: 'another order followed' })
    return new Promise((resolve) => {
      const settle = (answer: HookAnswer): void => {
        clearTimeout(timer)
        open.order = null
        resolve(answer)
      }
      // After a restart of this server the task connects again.
      let timer = setTimeout(() => settle(NO_PROCESS), Math.min(withinMs, CONNECT_MS))
      const send = (to: SendLine): void => {
        clearTimeout(timer)
        timer = setTimeout(() => settle({ error: 'it did not answer in time', isLate: true }), withinMs)
        to({ [order]: { deadline_ms: withinMs } })
      }
      open.order = { order, send, settle }
      if (open.hooks !== null) send(open.hooks)
    })
  }

  /**
   * Grants waiting allocations up to `mib`, or refuses all. A server requests one allocation of a task at a
   * time, the latest. Allocations that still wait after the grant are requested again, smallest first.
   */
  answer(taskId: string, attempt: number, mib: Mib, isGranted: boolean): void {
    const waiting = this.#open.get(this.pathOf(taskId, attempt))?.waiting ?? []
    for (const each of waiting.splice(0)) {
      if (isGranted && each.mib > mib) waiting.push(each)
      else each.answer(isGranted)
    }
    if (waiting.length > 0)
      this.#listener.allocationWanted(taskId, attempt, Math.min(...waiting.map((each) => each.mib)))
  }

  close(taskId: string, attempt: number): void {
    const path = this.pathOf(taskId, attempt)
    const open = this.#open.get(path)
    this.#open.delete(path)
    open?.order?.settle({ error: 'it has ended' })
    open?.socket.close()
  }

  closeAll(): void {
    for (const { socket } of this.#open.values()) socket.close()
    this.#open.clear()
  }
}
