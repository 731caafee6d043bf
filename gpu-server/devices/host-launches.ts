/** Launches of tasks on a host: the folder of the attempt and its files, its socket, then its guard. */
import { memoryLimitMib, type LimitsRecord, type ResourceLimits } from '../../protocol/resource-limits.ts'
import type { DeviceKind, Mib } from '../../protocol/units.ts'
import type { LaunchRequest } from '../core/device.ts'
import { CONTAINER_WORK } from '../guard/containers.ts'
import { mountsNamed, mountVariables, type DataMount } from '../files/data-mounts.ts'
import type { Guards, LaunchAnswer, LaunchSpec, TaskPlace } from '../guard/guards.ts'
import { refusalOfFault, STOPPED_FIRST } from '../guard/launch-refusal.ts'
import type { Accelerator } from './accelerator.ts'
import { HostPreparations, type HostPreparationOptions } from './host-preparations.ts'
import type { HostTask } from './host-task.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface HostLaunchOptions extends HostPreparationOptions {
  readonly guards: Guards
  readonly accelerator: Accelerator
  /** Environment variables of every task, in addition to those of the accelerator and this device. */
  readonly environment: Readonly<Record<string, string>>
  /** Data folders that this server offers. */
  readonly mounts: readonly DataMount[]
  /** Limit for both streams of an attempt together. */
  readonly maxOutputBytes: number
}

/**
 * Python writes its output at once instead of in blocks. The server's own environment and `--env` take
 * precedence.
 */
const UNBUFFERED = { PYTHONUNBUFFERED: '1' }

export class HostLaunches {
  readonly #options: HostLaunchOptions
  readonly preparations: HostPreparations
  readonly #openSocket: (taskId: string, attempt: number) => Promise<string>
  /** Launches that no guard knows yet, by task. */
  readonly #preparing = new Map<string, AbortController>()

  /** @param openSocket of the attempt; resolves with its path */
  constructor(options: HostLaunchOptions, openSocket: (taskId: string, attempt: number) => Promise<string>) {
    this.#options = options
    this.preparations = new HostPreparations(options)
    this.#openSocket = openSocket
  }

  /** Resolves once the command runs, or with why it does not; nothing of it is left then. */
  async run(task: HostTask, command: readonly string[], request: LaunchRequest): Promise<LaunchAnswer> {
    const { places } = this.#options
    const { taskId, attempt } = task
    const preparing = new AbortController()
    this.#preparing.set(taskId, preparing)
    const launched = await this.#launch(task, command, request, preparing.signal)
    if (launched.error !== null) await places.drop(taskId, attempt).catch(() => {})
    return launched
  }

  /** The task is to be stopped: a launch that no guard knows yet fails. */
  callOff(taskId: string): void {
    this.#preparing.get(taskId)?.abort()
  }

  async #launch(
    task: HostTask,
    command: readonly string[],
    request: LaunchRequest,
    stopped: AbortSignal,
  ): Promise<LaunchAnswer> {
    const { guards, places, workdirs = null } = this.#options
    const { taskId, attempt } = task
    let code = 'work_folder'
    try {
      const isPrepared = await this.preparations.take(taskId, attempt)
      const place = await places.open(taskId, attempt)
      if (!isPrepared && request.workdir !== undefined) {
        const why = (await workdirs?.prepare(place, request.workdir, stopped)) ?? null
        if (why !== null) return why
      }
      code = 'state_folder'
      const socket = await this.#openSocket(taskId, attempt)
      if (stopped.aborted) return { error: 'it was stopped first', refused: STOPPED_FIRST }
      const launched = guards.launch(this.#specOf(task, command, request, place, socket, isPrepared))
      this.#preparing.delete(taskId)
      return await launched
    } catch (error) {
      return {
        error: errorText(error),
        refused: refusalOfFault(error, code),
      }
    } finally {
      this.#preparing.delete(taskId)
    }
  }

  #specOf(
    task: HostTask,
    command: readonly string[],
    { image, workdir, cwd, limits, mounts: names = [], epoch = 0, env }: LaunchRequest,
    place: TaskPlace,
    socket: string,
    isPrepared: boolean,
  ): LaunchSpec {
    const { accelerator, maxOutputBytes } = this.#options
    const { start, taskId, attempt, gpus } = task
    const isContained = image !== undefined
    const mounts = mountsNamed(this.#options.mounts, names)
    // A program finds the uploaded files where it starts, in a container too.
    const startsIn = cwd ?? (isContained && workdir !== undefined ? CONTAINER_WORK : undefined)
    return {
      taskId,
      attempt,
      record: start,
      command,
      env: {
        ...UNBUFFERED,
        ...(isContained ? { HOME: CONTAINER_WORK } : this.#hostEnvironment(place, socket)),
        ...env,
        ...mountVariables(mounts, isContained),
        ...accelerator.environment(gpus),
        HEADROOM_TASK_ID: taskId,
        HEADROOM_GPUS: gpus.join(','),
        HEADROOM_VRAM_MIB: String(start.vramMib),
        HEADROOM_WORK: isContained ? CONTAINER_WORK : place.folder,
      },
      workingDirectory: place.folder,
      ...(startsIn === undefined ? {} : { cwd: startsIn }),
      user: place.user,
      place,
      isLeased: true,
      maxOutputBytes,
      ...(limits === undefined ? {} : { limits: limitsOf(task, limits, accelerator.kind) }),
      ...(isContained
        ? { container: { image, devices: accelerator.containerDevices(gpus), epoch, isPrepared, mounts } }
        : {}),
    }
  }

  /** An image has its own paths. */
  #hostEnvironment(place: TaskPlace, socket: string): Readonly<Record<string, string>> {
    const { environment, places } = this.#options
    const home = places.homeOf(place)
    return { ...environment, ...(home === null ? {} : { HOME: home }), HEADROOM_SOCKET: socket }
  }
}

/** What is set: where a swap copies VRAM into the process, its limit of memory is larger. */
function limitsOf(task: HostTask, limits: LimitsRecord, device: DeviceKind): ResourceLimits {
  const { pids_limit: pids = null, cpus = null } = limits
  return { memoryMib: memoryLimitOf(task, device), cpus, pids }
}

export function memoryLimitOf({ start, vramMib, gpus }: HostTask, device: DeviceKind): Mib | null {
  return memoryLimitMib(start.memoryMib ?? null, device, vramMib, gpus.length)
}
