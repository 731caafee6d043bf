/**
 * Per-attempt resources on this host: its user, the group of its control socket, and its working directory.
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
  /** Contains a folder for each attempt; created when missing. */
  readonly workFolder: string
  readonly stateFolder: string
}

export class TaskPlaces {
  readonly #options: TaskPlacesOptions
  readonly #pool: IdPool | null
  readonly #places = new Map<string, TaskPlace>()

  /** Throws the file system's error when the work folder cannot be made. */
  constructor(options: TaskPlacesOptions) {
    const { identity, stateFolder, workFolder } = options
    this.#options = options
    this.#pool = 'ids' in identity ? new IdPool(identity.ids, join(stateFolder, 'next-id')) : null
    const made = mkdirSync(workFolder, { recursive: true, mode: 0o711 })
    // Tasks cannot list the server's own folder; a folder chosen by the operator keeps its mode.
    if (made !== undefined || workFolder === join(stateFolder, 'work')) chmodSync(workFolder, 0o711)
  }

  /** HOME of a task; null: from the server's environment. */
  homeOf(place: TaskPlace): string | null {
    const { identity } = this.#options
    if (identity.kind === 'uid_per_attempt') return place.folder
    return identity.kind === 'task_user' ? identity.home : null
  }

  /** The group that may connect to the control socket of an attempt; null: only the server's user. */
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
    // Not chown: in a folder that the shared user may write, a link may have replaced it.
    if (place.user !== null) lchownSync(place.folder, place.user.uid, place.user.gid)
    return place
  }

  adopt({ taskId, attempt, place }: GuardedTask): void {
    if (place === undefined) return
    const key = folderNameOf(taskId, attempt)
    this.#places.set(key, place)
    if (place.user?.ownGroup !== undefined) this.#pool?.adopt(key, place.user.ownGroup)
  }

  /** The attempt has no process left: keeps its folder with its output, closed to later tasks. */
  close(taskId: string, attempt: number): void {
    const key = folderNameOf(taskId, attempt)
    const place = this.#places.get(key)
    if (place === undefined) return
    closeFolder(place)
    this.#places.delete(key)
    this.#pool?.release(key)
  }

  /** The attempt never ran. */
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
        `no id of --task-uids ${from}-${to} is free: all belong to attempts or processes. Choose a ` +
          'larger range.',
      )
    }
    return identity.kind === 'task_user'
      ? { uid: identity.uid, gid: identity.gid, ownGroup: id }
      : { uid: id, gid: id, ownGroup: id }
  }
}

/** Removes an empty folder. */
function closeFolder({ folder, user }: TaskPlace): void {
  try {
    rmdirSync(folder)
    return
  } catch {
    // The folder has files, or is gone.
  }
  if (user === null) return
  try {
    // First, so that a root without CAP_DAC_OVERRIDE (a container) may open it.
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
