/**
 * A GPU server: the core on a real host. Opens its parts in the order that is safe (R4): disk, guards,
 * accelerator, core.
 */
import { join } from 'node:path'
import type { Bus } from '../controller/ports/bus.ts'
import type { Clock } from '../controller/ports/clock.ts'
import type { RandomStream } from '../controller/ports/random.ts'
import type { DurationMs, Feature, Mib, MountFeature } from '../protocol/units.ts'
import { TaskChannels } from './channels/task-channels.ts'
import { ServerCore } from './core/server-core.ts'
import type { Accelerator } from './devices/accelerator.ts'
import type { Attachments } from './devices/attachments.ts'
import { HostDevice } from './devices/host-device.ts'
import type { ProxyRange } from './devices/port-proxies.ts'
import { attemptsWithIds, kindOf, type TaskIdentity } from './devices/task-identity.ts'
import { makeWorkFolder, TaskPlaces } from './devices/task-places.ts'
import type { DiskStorage } from './disk-storage.ts'
import type { DataMount } from './files/data-mounts.ts'
import { KeptWork, type WorkLimits } from './files/kept-work.ts'
import { WorkFiles } from './files/work-files.ts'
import { workdirsOf } from './files/workdirs.ts'
import type { Containers } from './guard/containers.ts'
import type { Guards } from './guard/guards.ts'

export interface GpuServerOptions {
  readonly nodeId: string
  readonly name: string
  readonly address: string
  readonly hostSwapMib: Mib
  /** Total bandwidth of copies through host memory, as measured; null: not configured. */
  readonly hostLinkMibPerS: number | null
  readonly allowExec: boolean
  /** Owners may run commands in their tasks, and connect to ports of them. */
  readonly allowAttach: boolean
  /** Features that tasks may require of this server. */
  readonly features: readonly (Feature | MountFeature)[]
  /** Data folders that it offers. */
  readonly mounts: readonly DataMount[]
  /** Exists, and is locked by `storage`. */
  readonly stateFolder: string
  /** Contains a folder for each attempt, its working directory. */
  readonly workFolder: string
  readonly storage: DiskStorage
  readonly guards: Guards
  /** The containers of the guards. Absent: no task runs in a container. */
  readonly containers?: Containers | null
  /** The guard program. */
  readonly program: string
  readonly accelerator: Accelerator
  /** CLOCK_BOOTTIME, as in the guards. */
  readonly clock: Clock
  readonly random: RandomStream
  readonly bus: Bus
  readonly identity: TaskIdentity
  /** The guard program, which serves files of tasks; null: this host cannot serve them. */
  readonly filesProgram: string | null
  /** Limits for the work folders of all ended attempts. */
  readonly workLimits: WorkLimits
  readonly environment: Readonly<Record<string, string>>
  readonly maxOutputBytes: number
  readonly idleAfterMs: DurationMs
  /** The processes of leases; null: leases are reservations only. */
  readonly attachments: Attachments | null
  /** Ports of proxies for tasks that run while their VRAM is away; null: no proxies. */
  readonly proxies: ProxyRange | null
  readonly onNote: (line: string) => void
  /** The controller refuses this server's hello; called once for each change of the reason. */
  readonly onRefused: (reason: string) => void
}

export interface GpuServer {
  /** Number of living tasks. */
  readonly taskCount: number
  /** The connection to the bus is back: contacts the controller at once. */
  reconnected(): void
  /**
   * Ends all tasks. Resolves with true when nothing of them is left and the controller knows, or with false
   * after `withinMs`.
   */
  endTasks(withinMs: DurationMs): Promise<boolean>
  /** Tasks live on under their guards. */
  close(): Promise<void>
}

const POLL_INTERVAL_MS: DurationMs = 50

/**
 * Rejects with AcceleratorFault, StateFault or an error of the guards; everything that it opened is closed
 * then.
 */
export async function startGpuServer(options: GpuServerOptions): Promise<GpuServer> {
  const { filesProgram, workFolder } = options
  makeWorkFolder(workFolder, options.stateFolder)
  const kept =
    filesProgram === null
      ? null
      : new KeptWork({
          folder: join(workFolder, '.ended'),
          program: filesProgram,
          limits: options.workLimits,
          now: () => Date.now(),
        })
  const places = new TaskPlaces({
    identity: options.identity,
    workFolder,
    stateFolder: options.stateFolder,
    kept,
  })
  const files =
    filesProgram === null
      ? null
      : new WorkFiles({ program: filesProgram, find: (taskId, attempt) => places.find(taskId, attempt) })
  const device = new HostDevice({
    guards: options.guards,
    program: options.program,
    accelerator: options.accelerator,
    clock: options.clock,
    socketFolder: join(options.stateFolder, 's'),
    places,
    workdirs: filesProgram === null ? null : workdirsOf(filesProgram, workFolder),
    containers: options.containers ?? null,
    attachments: options.attachments,
    proxies: options.proxies,
    environment: options.environment,
    mounts: options.mounts,
    maxOutputBytes: options.maxOutputBytes,
    idleAfterMs: options.idleAfterMs,
    onNote: options.onNote,
  })
  await device.open()
  const channels = options.allowAttach ? new TaskChannels(options) : null
  const maxAttempts = attemptsWithIds(options.identity)
  const core = new ServerCore({
    nodeId: options.nodeId,
    name: options.name,
    address: options.address,
    hostSwapMib: options.hostSwapMib,
    hostLinkMibPerS: options.hostLinkMibPerS,
    signalsWanted: options.accelerator.signalsWanted,
    deviceKind: options.accelerator.kind,
    allowExec: options.allowExec,
    features: options.features,
    taskIdentity: kindOf(options.identity),
    ...(maxAttempts === null ? {} : { maxAttempts }),
    clock: options.clock,
    random: options.random,
    bus: options.bus,
    device,
    storage: options.storage,
    files,
    channels,
    areHeartbeatsElided: false,
    onRefused: options.onRefused,
  })
  core.start()
  return {
    get taskCount() {
      return core.attempts.size
    },
    reconnected: () => core.reconnected(),
    async endTasks(withinMs) {
      core.endTasks()
      const until = performance.now() + withinMs
      while (!core.isQuiet && performance.now() < until)
        await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
      return core.isQuiet
    },
    async close() {
      core.stop()
      channels?.closeAll()
      files?.close()
      kept?.close()
      await device.close()
      options.storage.close()
    },
  }
}
