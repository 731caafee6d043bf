/** The control sockets of this host's tasks, and the allocations that wait on them. */
import { createHash } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Mib } from '../../protocol/units.ts'
import type { LineSocket } from './line-socket.ts'
import { openControlSocket } from './control-socket.ts'

export interface TaskSocketsListener {
  busy(taskId: string, attempt: number, isBusy: boolean): void
  /** Answered through `answer`. */
  allocationWanted(taskId: string, attempt: number, mib: Mib): void
}

interface Waiting {
  readonly mib: Mib
  readonly answer: (isGranted: boolean) => void
}

const NAME_LENGTH = 20
/** The kernel's limit without the terminating zero. */
const MAX_PATH_BYTES = 107

export class TaskSockets {
  readonly #folder: string
  readonly #groupOf: (taskId: string, attempt: number) => number | null
  readonly #listener: TaskSocketsListener
  readonly #open = new Map<string, { readonly socket: LineSocket; readonly waiting: Waiting[] }>()

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
      },
      chownSync,
    )
    this.#open.set(path, { socket, waiting })
    return path
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
    this.#open.get(path)?.socket.close()
    this.#open.delete(path)
  }

  closeAll(): void {
    for (const { socket } of this.#open.values()) socket.close()
    this.#open.clear()
  }
}
