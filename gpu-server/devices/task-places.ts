/**
 * What an attempt has for itself on this host: its user, the group of its control socket, and the folder in
 * which it begins.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  lchownSync,
  mkdirSync,
  openSync,
  rmdirSync,
} from 'node:fs'
import { join } from 'node:path'
import { folderNameOf } from '../guard/guard-folder.ts'
import type { GuardedTask, TaskPlace, TaskUser } from '../guard/guards.ts'
import { removeTree } from '../guard/remove-tree.ts'
import { IdPool } from './id-pool.ts'
import type { TaskIdentity } from './task-identity.ts'

export interface TaskPlacesOptions {
  readonly identity: TaskIdentity
  /** Holds a folder for each attempt; it is made when it is missing. */
  readonly workFolder: string
  readonly stateFolder: string
}

export class TaskPlaces {
  readonly #options: TaskPlacesOptions
  readonly #pool: IdPool | null
  readonly #places = new Map<string, TaskPlace>()

  /** Throws the error of the file system when the work folder cannot be made. */
  constructor(options: TaskPlacesOptions) {
    const { identity, stateFolder, workFolder } = options
    this.#options = options
    this.#pool = 'ids' in identity ? new IdPool(identity.ids, join(stateFolder, 'next-id')) : null
    const made = mkdirSync(workFolder, { recursive: true, mode: 0o711 })
    // The folder of this server alone is not listed by tasks; one that the operator chose stays as it is.
    if (made !== undefined || workFolder === join(stateFolder, 'work')) chmodSync(workFolder, 0o711)
  }

  /** HOME of a task; null: as the server's environment says. */
  homeOf(place: TaskPlace): string | null {
    const { identity } = this.#options
    if (identity.kind === 'uid_per_attempt') return place.folder
    return identity.kind === 'task_user' ? identity.home : null
  }

  /** The group that may connect to the control socket of an attempt; null: the user of the server alone. */
  socketGroupOf(taskId: string, attempt: number): number | null {
    return this.#places.get(folderNameOf(taskId, attempt))?.user?.ownGroup ?? null
  }

  /** Throws when no id is free, or the folder cannot be made. */
  async open(taskId: string, attempt: number): Promise<TaskPlace> {
    const key = folderNameOf(taskId, attempt)
    const place = { user: this.#userFor(key), folder: join(this.#options.workFolder, key) }
    this.#places.set(key, place)
    // Left by an attempt that never ran: its server ended between this line and the launch.
    await removeTree(place.folder)
    mkdirSync(place.folder, { mode: 0o700 })
    // Not chown: in a folder that the shared user may write, a link may have taken its place.
    if (place.user !== null) lchownSync(place.folder, place.user.uid, place.user.gid)
    return place
  }

  adopt({ taskId, attempt, place }: GuardedTask): void {
    if (place === undefined) return
    const key = folderNameOf(taskId, attempt)
    this.#places.set(key, place)
    if (place.user?.ownGroup !== undefined) this.#pool?.adopt(key, place.user.ownGroup)
  }

  /**
   * Nothing of the attempt runs any more: what it left in its folder is kept with its output, closed to every
   * later task.
   */
  close(taskId: string, attempt: number): void {
    const key = folderNameOf(taskId, attempt)
    const place = this.#places.get(key)
    if (place === undefined) return
    closeFolder(place)
    this.#places.delete(key)
    this.#pool?.release(key)
  }

  /** It never ran. */
  async drop(taskId: string, attempt: number): Promise<void> {
    const place = this.#places.get(folderNameOf(taskId, attempt))
    this.close(taskId, attempt)
    if (place !== undefined) await removeTree(place.folder)
  }

  #userFor(key: string): TaskUser | null {
    const { identity } = this.#options
    if (!('ids' in identity) || this.#pool === null) return null
    const id = this.#pool.take(key)
    if (id === null) {
      const { from, to } = identity.ids
      throw new Error(
        `no id of --task-uids ${from}-${to} is free: every one belongs to an attempt or a process`,
      )
    }
    return identity.kind === 'task_user'
      ? { uid: identity.uid, gid: identity.gid, ownGroup: id }
      : { uid: id, gid: id, ownGroup: id }
  }
}

/** An empty one is removed. */
function closeFolder({ folder, user }: TaskPlace): void {
  try {
    rmdirSync(folder)
    return
  } catch {
    // It holds files, or is gone.
  }
  if (user === null) return
  try {
    // First of all, so that a root without CAP_DAC_OVERRIDE (a container) may open it.
    lchownSync(folder, process.getuid?.() ?? 0, process.getgid?.() ?? 0)
    const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    try {
      fchmodSync(fd, 0o700)
    } finally {
      closeSync(fd)
    }
  } catch {
    // The task has removed it.
  }
}
