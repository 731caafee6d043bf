/**
 * Work folders of attempts that have ended: kept for a time and within a size, in a folder that no task can
 * enter, so that a later attempt with the same user id cannot read them.
 */
import {
  chmodSync,
  constants,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
} from 'node:fs'
import type { TaskUser } from '../guard/guards.ts'
import { removeTree } from '../guard/remove-tree.ts'
import { WorkHelper } from './work-helper.ts'

export interface WorkLimits {
  readonly retentionMs: number
  /** Limit for all folders together; the latest folder may exceed it. */
  readonly maxBytes: number
}

export interface KeptWorkOptions {
  /** A folder below the work folder, so that a work folder can be moved there. */
  readonly folder: string
  /** The guard program, which measures folders. */
  readonly program: string
  readonly limits: WorkLimits
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number
}

interface Kept {
  readonly endedAt: number
  bytes: number
}

const SWEEP_INTERVAL_MS = 60_000

export class KeptWork {
  readonly #options: KeptWorkOptions
  /**
   * Open handle through which all folders are reached: the path itself may be below a folder that a task can
   * write.
   */
  readonly #path: string
  readonly #kept = new Map<string, Kept>()
  #work: Promise<void> = Promise.resolve()
  readonly #timer: NodeJS.Timeout

  /** Throws the file system's error when the folder cannot be made, or belongs to someone else. */
  constructor(options: KeptWorkOptions) {
    this.#options = options
    const { folder } = options
    // Not recursively: the work folder above it must be one that tasks can enter.
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 })
    const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    this.#path = `/proc/self/fd/${fd}`
    const about = lstatSync(`${this.#path}/.`)
    if (about.uid !== process.getuid?.()) throw new Error(`${folder} belongs to user ${about.uid}`)
    chmodSync(`${this.#path}/.`, 0o700)
    for (const name of readdirSync(this.#path))
      this.#kept.set(name, { endedAt: lstatSync(`${this.#path}/${name}`).ctimeMs, bytes: 0 })
    this.#timer = setInterval(() => this.#sweepSoon(), SWEEP_INTERVAL_MS)
    this.#timer.unref()
    for (const name of this.#kept.keys()) this.#measureSoon(name)
  }

  /**
   * Takes over the folder of an attempt that has no process left. The server owns it, and it is open to the
   * server only. Throws the file system's error.
   */
  take(folder: string, name: string, user: TaskUser | null): void {
    renameSync(folder, `${this.#path}/${name}`)
    if (user !== null) lchownSync(`${this.#path}/${name}`, user.uid, user.gid)
    this.#kept.set(name, { endedAt: this.#options.now(), bytes: 0 })
    this.#measureSoon(name)
  }

  /** The folder and the user that owns it; null: not kept. */
  find(name: string): { readonly folder: string; readonly user: Pick<TaskUser, 'uid' | 'gid'> } | null {
    if (!this.#kept.has(name)) return null
    const about = lstatSync(`${this.#path}/${name}`, { throwIfNoEntry: false })
    return about === undefined
      ? null
      : { folder: `${this.#path}/${name}`, user: { uid: about.uid, gid: about.gid } }
  }

  /** Ends the timer. */
  close(): void {
    clearInterval(this.#timer)
  }

  #measureSoon(name: string): void {
    this.#work = this.#work.then(async () => {
      const kept = this.#kept.get(name)
      if (kept !== undefined) kept.bytes = await this.#bytesIn(name)
      await this.#sweep()
    })
  }

  #sweepSoon(): void {
    this.#work = this.#work.then(() => this.#sweep())
  }

  /** Runs as the user of the task: other users may not be able to enter the folders. */
  async #bytesIn(name: string): Promise<number> {
    const found = this.find(name)
    if (found === null) return 0
    let helper: WorkHelper | null = null
    try {
      helper = await WorkHelper.open(this.#options.program, found.folder, asOwner(found.user))
      return (await helper.request({ op: 'usage', payload: new Uint8Array() })).a
    } catch {
      // It is removed when its time is over.
      return 0
    } finally {
      helper?.end()
    }
  }

  /** Removes what is too old, then the oldest while all together are too large. */
  async #sweep(): Promise<void> {
    const { limits, now } = this.#options
    const oldestFirst = [...this.#kept].sort(
      ([a, one], [b, other]) => one.endedAt - other.endedAt || (a < b ? -1 : 1),
    )
    let bytes = oldestFirst.reduce((sum, [, kept]) => sum + kept.bytes, 0)
    for (const [place, [name, kept]] of oldestFirst.entries()) {
      const isOld = kept.endedAt + limits.retentionMs <= now()
      const isTooMuch = bytes > limits.maxBytes && place < oldestFirst.length - 1
      if (!isOld && !isTooMuch) continue
      bytes -= kept.bytes
      this.#kept.delete(name)
      await removeTree(`${this.#path}/${name}`).catch(() => undefined)
    }
  }
}

/** Only root can become another user. */
export function asOwner(user: Pick<TaskUser, 'uid' | 'gid'>): Pick<TaskUser, 'uid' | 'gid'> | null {
  return user.uid === process.getuid?.() ? null : user
}
