import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import type { Mib } from '../../protocol/units.ts'
import type { Containers, PreparedImage } from './containers.ts'
import type { GuardedTask, Guards, LaunchAnswer, LaunchSpec, OutputChunk } from './guards.ts'
import { adoptFolder } from './adopt-folder.ts'
import { EndedOutputs, isEndedAndForgotten, type OutputLimits } from './ended-outputs.ts'
import { findCgroupRoot, makeCgroup, removeCgroup } from './guard-cgroup.ts'
import { GuardFault } from './guard-fault.ts'
import {
  createFolder,
  folderNameOf,
  foldersIn,
  readGuard,
  readStarted,
  removeFolder,
  type FolderTask,
} from './guard-folder.ts'
import { startGuard, whyNotLaunchable, type ContainerLaunch } from './guard-launch.ts'
import { limitFoldersOf, makeLimits, setMemory, type LimitRoots } from './limit-cgroups.ts'
import { LeaseFile } from './guard-lease.ts'
import { readGuardOutput } from './guard-output.ts'
import { sweep } from './guard-sweep.ts'
import { BAD_COMMAND, NO_LIMITS, NO_RUNTIME, refusalOfFault, STOPPED_FIRST } from './launch-refusal.ts'
import { HeldGuard } from './held-guard.ts'
import { errorText } from '../../protocol/error-text.ts'

const SWEEP_LIMIT_MS = 30_000
/** Characters of the name of an attempt in the name of its cgroup. */
const CGROUP_NAME = 200
const CANNOT_LIMIT: LaunchAnswer = { error: 'this server cannot limit tasks', refused: NO_LIMITS }

export interface GuardsOptions {
  /** Used by this server only; guards of an earlier process of it are found here. */
  readonly folder: string
  /** `guardProgram()`, or the path of the installed program. */
  readonly program: string
  readonly endedOutputs: OutputLimits
  /** Tasks get their own PID namespaces and cgroups where this host allows it. */
  readonly isIsolated: boolean
  /** A disk failure, or a process that cannot be killed, after the server has started: one line (R10). */
  readonly onFault: (fault: Error) => void
  /** Absent: no task on the host has limits. */
  readonly limitRoots?: LimitRoots | null
  /** Absent: tasks run on the host only. */
  readonly containers?: Containers | null
}

interface Launching {
  isLeased: boolean
  /** Stop it with this grace once it runs; null: do not stop it. */
  stopGraceMs: number | null
  /** Aborted when it is to be stopped: an image is not pulled any further. */
  readonly preparing: AbortController
}

/**
 * Guards of this host: one folder and one process each. Rejects with the file system's error when the folder
 * cannot be used.
 */
export async function openGuards(options: GuardsOptions): Promise<Guards> {
  await mkdir(`${options.folder}/guards`, { recursive: true, mode: 0o700 })
  return new LocalGuards(options, new LeaseFile(options.folder))
}

/** The server requested it twice: neither the host nor the task is the cause. */
function launchedBefore(key: string): LaunchAnswer {
  return {
    error: `attempt ${key} has been launched before`,
    refused: { cause: 'passing', code: 'launched_before' },
  }
}

class LocalGuards implements Guards {
  readonly #options: GuardsOptions
  readonly #parent: string
  readonly #lease: LeaseFile
  readonly #cgroupRoot: string | null
  readonly #outputs: EndedOutputs
  readonly #held = new Map<string, HeldGuard>()
  readonly #launching = new Map<string, Launching>()
  /** Containers of attempts that start or live. */
  readonly #containers = new Set<string>()
  readonly #listeners: ((task: GuardedTask) => void)[] = []
  #isClosed = false

  constructor(options: GuardsOptions, lease: LeaseFile) {
    this.#options = options
    this.#parent = `${options.folder}/guards`
    this.#lease = lease
    this.#cgroupRoot = options.isIsolated ? findCgroupRoot() : null
    this.#outputs = new EndedOutputs(options.endedOutputs)
  }

  async adopt(): Promise<readonly GuardedTask[]> {
    const folders = await foldersIn(this.#parent)
    const areForgotten = await Promise.all(folders.map(isEndedAndForgotten))
    await this.#outputs.adopt(folders.filter((_, i) => areForgotten[i]))
    const open = folders.filter((_, i) => !areForgotten[i])
    const found = await Promise.all(
      open.map((folder) => adoptFolder(folder, (task) => this.#hold(task, folder))),
    )
    const held = found.filter((one) => one !== null)
    for (const one of held) {
      this.#held.set(folderNameOf(one.task.taskId, one.task.attempt), one)
      if (one.task.container !== undefined && !one.isEnded) this.#containers.add(one.task.container)
    }
    this.#options.containers?.removeOthers((name) => this.#containers.has(name))
    return held.map((one) => one.view())
  }

  async launch(spec: LaunchSpec): Promise<LaunchAnswer> {
    const key = folderNameOf(spec.taskId, spec.attempt)
    const why = whyNotLaunchable(spec)
    if (why !== null) return { error: why, refused: BAD_COMMAND }
    if (this.#held.has(key) || this.#launching.has(key)) return launchedBefore(key)
    const launching: Launching = {
      isLeased: spec.isLeased,
      stopGraceMs: null,
      preparing: new AbortController(),
    }
    this.#launching.set(key, launching)
    try {
      const image = await this.#prepare(spec, launching)
      if (image !== null && image.error !== null) return image
      return await this.#launchIn(key, spec, launching, image)
    } catch (error) {
      const words = error instanceof GuardFault ? error.message : `guard folder: ${errorText(error)}`
      return { error: words, refused: refusalOfFault(error) }
    } finally {
      this.#launching.delete(key)
    }
  }

  lease(untilMono: number, lengthMs: number): void {
    this.#lease.write(untilMono, lengthMs)
  }

  setLeased(taskId: string, attempt: number, isLeased: boolean): void {
    const key = folderNameOf(taskId, attempt)
    const launching = this.#launching.get(key)
    if (launching !== undefined) launching.isLeased = isLeased
    this.#held.get(key)?.send(isLeased ? 'leased 1' : 'leased 0')
  }

  async suspend(taskId: string, attempt: number): Promise<void> {
    await this.#known(taskId, attempt).suspend()
  }

  async resume(taskId: string, attempt: number): Promise<void> {
    await this.#known(taskId, attempt).resume()
  }

  kill(taskId: string, attempt: number): void {
    this.stop(taskId, attempt, 0)
  }

  stop(taskId: string, attempt: number, graceMs: number): void {
    const key = folderNameOf(taskId, attempt)
    const launching = this.#launching.get(key)
    if (launching !== undefined) {
      launching.stopGraceMs = Math.min(graceMs, launching.stopGraceMs ?? graceMs)
      launching.preparing.abort()
    }
    this.#held.get(key)?.stop(graceMs)
  }

  onExit(listener: (task: GuardedTask) => void): void {
    this.#listeners.push(listener)
  }

  processIds(taskId: string, attempt: number): readonly number[] {
    return this.#held.get(folderNameOf(taskId, attempt))?.processIds() ?? []
  }

  folderOf(taskId: string, attempt: number): string | null {
    const held = this.#held.get(folderNameOf(taskId, attempt))
    return held === undefined || held.isEnded ? null : held.folder
  }

  setMemoryLimit(taskId: string, attempt: number, mib: Mib): void {
    const [memory] = this.#known(taskId, attempt).task.limitCgroups ?? []
    if (memory !== undefined) setMemory(memory, mib)
  }

  async readOutput(
    taskId: string,
    attempt: number,
    stream: 'stdout' | 'stderr',
    offset: number,
    maxBytes: number,
  ): Promise<OutputChunk | null> {
    return readGuardOutput(`${this.#parent}/${folderNameOf(taskId, attempt)}`, stream, offset, maxBytes)
  }

  forget(taskId: string, attempt: number): void {
    const key = folderNameOf(taskId, attempt)
    const held = this.#held.get(key)
    if (held === undefined || !held.isEnded) return
    this.#held.delete(key)
    this.#outputs.add(held.folder).catch((error: unknown) => this.#fault(error))
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const held of this.#held.values()) held.release()
    this.#options.containers?.close()
    this.#lease.close()
  }

  /** Null: it runs on the host. */
  async #prepare({ container }: LaunchSpec, { preparing }: Launching) {
    const { containers } = this.#options
    if (container === undefined) return null
    if (containers === undefined || containers === null)
      return { error: 'this server runs no containers', refused: NO_RUNTIME }
    const { isPrepared = false } = container
    const image = await containers.prepare(container.image, { signal: preparing.signal, isPrepared })
    return preparing.signal.aborted ? { error: 'it was stopped first', refused: STOPPED_FIRST } : image
  }

  async #launchIn(
    key: string,
    spec: LaunchSpec,
    launching: Launching,
    image: PreparedImage | null,
  ): Promise<LaunchAnswer> {
    const { taskId, attempt, record, place } = spec
    const random = randomBytes(6).toString('hex')
    const mark = `${key}.${random}`
    const name = image === null ? null : `headroom-${random}`
    const cgroupName = `${key.slice(0, CGROUP_NAME)}.${random}`
    const limitCgroups = this.#limitCgroupsOf(spec, cgroupName)
    if (limitCgroups === null) return CANNOT_LIMIT
    const task: FolderTask = {
      ...{ taskId, attempt, record, mark },
      ...(place === undefined ? {} : { place }),
      ...(name === null ? {} : { container: name }),
      ...(limitCgroups.length === 0 ? {} : { limitCgroups }),
    }
    const folder = await createFolder(this.#parent, task)
    const cgroup = image === null ? this.#cgroupOf(cgroupName, limitCgroups) : null
    const { program, isIsolated } = this.#options
    const wasLeased = launching.isLeased
    const container = image === null ? null : this.#containerOf(name ?? '', folder, spec, image)
    const start = { program, folder, leasePath: this.#lease.path, cgroup, isIsolated, mark, container }
    if (name !== null) this.#containers.add(name)
    const whyUnlimited = this.#limit(spec, cgroupName, limitCgroups)
    const answer = whyUnlimited ?? (await startGuard({ ...start, limitCgroups }, spec, wasLeased))
    if (answer.error !== null) {
      await sweep(task, await readStarted(folder), SWEEP_LIMIT_MS)
      await this.#removeContainer(task)
      for (const made of [cgroup, ...limitCgroups]) removeCgroup(made)
      await removeFolder(folder)
      return answer
    }
    await this.#take(this.#hold(task, folder))
    if (launching.isLeased !== wasLeased) this.setLeased(taskId, attempt, launching.isLeased)
    if (launching.stopGraceMs !== null) this.#held.get(key)?.stop(launching.stopGraceMs)
    const imageDigest = image?.digest ?? null
    return imageDigest === null ? answer : { ...answer, imageDigest }
  }

  /** An engine limits its containers itself. Null: this server cannot limit the task. */
  #limitCgroupsOf({ limits, container }: LaunchSpec, name: string): readonly string[] | null {
    if (limits === undefined || container !== undefined) return []
    const { limitRoots } = this.#options
    return limitRoots === undefined || limitRoots === null ? null : limitFoldersOf(limitRoots, name)
  }

  /** A process is in one cgroup of version 2. */
  #cgroupOf(name: string, limitCgroups: readonly string[]): string | null {
    const isLimitedThere = limitCgroups.length > 0 && this.#options.limitRoots?.version === 2
    return isLimitedThere ? (limitCgroups[0] ?? null) : makeCgroup(this.#cgroupRoot, name)
  }

  #limit({ limits }: LaunchSpec, name: string, folders: readonly string[]): LaunchAnswer | null {
    const { limitRoots = null } = this.#options
    if (limits === undefined || limitRoots === null || folders.length === 0) return null
    try {
      makeLimits(limitRoots, name, limits)
      return null
    } catch (error) {
      return { error: `its limits cannot be set: ${errorText(error)}`, refused: NO_LIMITS }
    }
  }

  #containerOf(name: string, folder: string, spec: LaunchSpec, image: PreparedImage): ContainerLaunch {
    const { taskId, attempt, user, container, workingDirectory: workFolder } = spec
    const { containers, program } = this.#options
    const ids = user ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
    const groups = user?.ownGroup === undefined ? [] : [user.ownGroup]
    const from = { name, taskId, attempt, program, workFolder, groups, user: ids, imageId: image.imageId }
    const { devices = [], epoch = 0, mounts = [] } = container ?? {}
    const limits = spec.limits === undefined ? {} : { limits: spec.limits }
    return {
      workingDirectory: image.workingDirectory,
      start: async () =>
        (await containers?.start({
          ...from,
          ...limits,
          devices,
          epoch,
          mounts,
          socket: `${folder}/init`,
        })) ?? {
          error: 'this server runs no containers',
          refused: NO_RUNTIME,
        },
    }
  }

  async #removeContainer({ container }: FolderTask): Promise<void> {
    if (container === undefined) return
    this.#containers.delete(container)
    await this.#options.containers?.remove(container)
  }

  /**
   * A command may have ended before its guard was connected; that is reported after the answer to the launch.
   */
  async #take(held: HeldGuard): Promise<void> {
    this.#held.set(folderNameOf(held.task.taskId, held.task.attempt), held)
    try {
      await held.attach((await readGuard(held.folder))?.guard?.pid ?? 0)
    } catch {
      setImmediate(() => void held.settle())
    }
    if (this.#isClosed) held.release()
  }

  #hold(task: FolderTask, folder: string): HeldGuard {
    return new HeldGuard(task, folder, (held, fault) => {
      if (fault !== null) return this.#fault(fault)
      void this.#removeContainer(held.task)
      for (const listener of this.#listeners) listener(held.view())
    })
  }

  #known(taskId: string, attempt: number): HeldGuard {
    const held = this.#held.get(folderNameOf(taskId, attempt))
    if (held === undefined) throw new GuardFault(`no guard has attempt ${folderNameOf(taskId, attempt)}`)
    return held
  }

  #fault(error: unknown): void {
    if (this.#isClosed) return
    this.#options.onFault(error instanceof Error ? error : new GuardFault(errorText(error)))
  }
}
