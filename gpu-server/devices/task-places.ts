/**
 * Per-attempt resources on this host: its user, the group of its control socket, and its working directory.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lchownSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
} from 'node:fs'
import { join } from 'node:path'
import { folderNameOf } from '../guard/guard-folder.ts'
import type { GuardedTask, TaskPlace, TaskUser } from '../guard/guards.ts'
import { removeTree } from '../guard/remove-tree.ts'
import { asOwner, type KeptWork } from '../files/kept-work.ts'
import { IdPool } from './id-pool.ts'
import type { TaskIdentity } from './task-identity.ts'

export interface TaskPlacesOptions {
  readonly identity: TaskIdentity
  /** Contains a folder for each attempt; created when missing. */
  readonly workFolder: string
  readonly stateFolder: string
  /** Keeps folders of attempts that have ended; absent: they stay where they are, with their output. */
  readonly kept?: KeptWork | null
}

const VRAM_FILE = '.headroom-vram'

/**
 * Tasks enter the folder and cannot list it; one that the operator made keeps its mode. Throws the file
 * system's error.
 */
export function makeWorkFolder(workFolder: string, stateFolder: string): void {
  const made = mkdirSync(workFolder, { recursive: true, mode: 0o711 })
  if (made !== undefined || workFolder === join(stateFolder, 'work')) chmodSync(workFolder, 0o711)
}

export class TaskPlaces {
  readonly #options: TaskPlacesOptions
  readonly #pool: IdPool | null
  readonly #places = new Map<string, TaskPlace>()
  /** Contains the folders of attempts that have not started, until their start. */
  #preparing: string | null = null
  readonly #prepared = new Map<string, TaskPlace>()

  /** Throws the file system's error when the work folder cannot be made. */
  constructor(options: TaskPlacesOptions) {
    const { identity, stateFolder, workFolder } = options
    this.#options = options
    this.#pool = 'ids' in identity ? new IdPool(identity.ids, join(stateFolder, 'next-id')) : null
    makeWorkFolder(workFolder, stateFolder)
  }

  /**
   * Makes an empty folder for attempts that have not started, and removes what an earlier process of this
   * server had prepared. Rejects with the file system's error.
   */
  async openPrepared(): Promise<void> {
    const folder = join(this.#options.workFolder, '.preparing')
    await removeTree(folder)
    mkdirSync(folder, { mode: 0o711 })
    // Its path may be below a folder that a task can write: it is reached through the open folder.
    const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    const about = fstatSync(fd)
    if (about.uid !== process.getuid?.()) throw new Error(`${folder} belongs to user ${about.uid}`)
    fchmodSync(fd, 0o711)
    this.#preparing = `/proc/self/fd/${fd}`
  }

  /** The place of an attempt that may start later; `open` moves it. Throws as `open` does. */
  async prepare(taskId: string, attempt: number): Promise<TaskPlace> {
    if (this.#preparing === null) throw new Error('nothing is prepared before openPrepared')
    const key = folderNameOf(taskId, attempt)
    const place = { user: this.#userFor(key), folder: join(this.#preparing, key) }
    this.#prepared.set(key, place)
    await this.#makeFolder(place)
    return place
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
    const prepared = this.#prepared.get(key)
    const place = {
      user: prepared === undefined ? this.#userFor(key) : prepared.user,
      folder: join(this.#options.workFolder, key),
    }
    this.#places.set(key, place)
    if (prepared === undefined) await this.#makeFolder(place)
    else {
      this.#prepared.delete(key)
      await removeTree(place.folder)
      renameSync(prepared.folder, place.folder)
    }
    return place
  }

  async #makeFolder({ folder, user }: TaskPlace): Promise<void> {
    // Left by an attempt that never ran: its server ended between this line and the launch.
    await removeTree(folder)
    mkdirSync(folder, { mode: 0o700 })
    // Not chown: in a folder that the shared user may write, a link may have replaced it.
    if (user !== null) lchownSync(folder, user.uid, user.gid)
  }

  adopt({ taskId, attempt, place }: GuardedTask): void {
    if (place === undefined) return
    const key = folderNameOf(taskId, attempt)
    this.#places.set(key, place)
    if (place.user?.ownGroup !== undefined) this.#pool?.adopt(key, place.user.ownGroup)
  }

  /** Its length says how much VRAM an attempt uses on declared GPUs. */
  vramFileOf(taskId: string, attempt: number): string {
    return join(this.#options.workFolder, folderNameOf(taskId, attempt), VRAM_FILE)
  }

  /** The folder of an attempt, living or ended, and its user if that is not the server's; null: none. */
  find(
    taskId: string,
    attempt: number,
  ): { readonly folder: string; readonly user: Pick<TaskUser, 'uid' | 'gid'> | null } | null {
    const key = folderNameOf(taskId, attempt)
    const living = this.#places.get(key)
    if (living !== undefined) return living
    const kept = this.#options.kept?.find(key) ?? null
    if (kept === null) return null
    const user = asOwner(kept.user)
    // Its user is not known: the server ended while it took the folder over.
    return user === null && 'ids' in this.#options.identity ? null : { folder: kept.folder, user }
  }

  /** The attempt has no process left: keeps its folder, closed to later tasks. */
  close(taskId: string, attempt: number): void {
    const key = folderNameOf(taskId, attempt)
    const place = this.#places.get(key)
    if (place === undefined) return
    if (closeFolder(place)) this.#keep(key, place)
    this.#release(key)
  }

  /** The attempt never ran. */
  async drop(taskId: string, attempt: number): Promise<void> {
    const key = folderNameOf(taskId, attempt)
    const place = this.#places.get(key) ?? this.#prepared.get(key)
    if (place === undefined) return
    closeFolder(place)
    this.#release(key)
    await removeTree(place.folder)
  }

  #keep(key: string, { folder, user }: TaskPlace): void {
    try {
      this.#options.kept?.take(folder, key, user)
    } catch {
      // The task has removed it, or it cannot be moved: it is removed together with its output.
    }
  }

  #release(key: string): void {
    this.#places.delete(key)
    this.#prepared.delete(key)
    this.#pool?.release(key)
  }

  #userFor(key: string): TaskUser | null {
    const { identity } = this.#options
    if (!('ids' in identity) || this.#pool === null) return null
    const id = this.#pool.take(key)
    if (id === null) {
      const { from, to } = identity.ids
      throw new Error(
        `all user IDs of --task-uids ${from}-${to} are in use by attempts or processes. ` +
          'Choose a larger range.',
      )
    }
    return identity.kind === 'task_user'
      ? { uid: identity.uid, gid: identity.gid, ownGroup: id }
      : { uid: id, gid: id, ownGroup: id }
  }
}

/** Removes an empty folder. Returns true if there is one to keep. */
function closeFolder({ folder, user }: TaskPlace): boolean {
  try {
    rmdirSync(folder)
    return false
  } catch {
    // The folder has files, or is gone.
  }
  if (user === null) return true
  try {
    // First, so that a root without CAP_DAC_OVERRIDE (a container) may open it.
    lchownSync(folder, process.getuid?.() ?? 0, process.getgid?.() ?? 0)
    const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    try {
      fchmodSync(fd, 0o700)
    } finally {
      closeSync(fd)
    }
    return true
  } catch {
    // The task has removed it.
    return false
  }
}
