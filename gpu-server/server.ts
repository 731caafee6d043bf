/**
 * A GPU server: the core over a real host. Opens what is on the host in the order in which it is safe (R4):
 * disk, guards, accelerator, core.
 */
import { join } from 'node:path'
import type { Bus } from '../controller/ports/bus.ts'
import type { Clock } from '../controller/ports/clock.ts'
import type { RandomStream } from '../controller/ports/random.ts'
import type { DurationMs, Mib } from '../protocol/units.ts'
import { ServerCore } from './core/server-core.ts'
import type { Accelerator } from './devices/accelerator.ts'
import { HostDevice } from './devices/host-device.ts'
import { attemptsWithIds, kindOf, type TaskIdentity } from './devices/task-identity.ts'
import { TaskPlaces } from './devices/task-places.ts'
import type { DiskStorage } from './disk-storage.ts'
import type { Guards } from './guard/guards.ts'

export interface GpuServerOptions {
  readonly nodeId: string
  readonly name: string
  readonly address: string
  readonly hostSwapMib: Mib
  /** What all copies together move through host memory, as it was measured; null: nobody has said. */
  readonly hostLinkMibPerS: number | null
  readonly allowExec: boolean
  /** It is there, and locked by `storage`. */
  readonly stateFolder: string
  /** Holds a folder for each attempt, in which it begins. */
  readonly workFolder: string
  readonly storage: DiskStorage
  readonly guards: Guards
  readonly accelerator: Accelerator
  /** CLOCK_BOOTTIME, as the guards'. */
  readonly clock: Clock
  readonly random: RandomStream
  readonly bus: Bus
  readonly identity: TaskIdentity
  readonly environment: Readonly<Record<string, string>>
  readonly maxOutputBytes: number
  readonly idleAfterMs: DurationMs
  readonly onNote: (line: string) => void
  /** The controller refuses this server's hello: its reason, once for each in a row. */
  readonly onRefused: (reason: string) => void
}

export interface GpuServer {
  /** Tasks that live here now. */
  readonly taskCount: number
  /** The bus has found its way again: the controller hears of this server at once. */
  reconnected(): void
  /**
   * Ends all tasks; resolves when nothing of them is left and the controller knows, or after `withinMs`: says
   * which.
   */
  endTasks(withinMs: DurationMs): Promise<boolean>
  /** Tasks live on under their guards. */
  close(): Promise<void>
}

const POLL_INTERVAL_MS: DurationMs = 50

/**
 * Rejects with AcceleratorFault, StateFault or what the guards say; nothing is left open then but what was
 * handed in.
 */
export async function startGpuServer(options: GpuServerOptions): Promise<GpuServer> {
  const device = new HostDevice({
    guards: options.guards,
    accelerator: options.accelerator,
    clock: options.clock,
    socketFolder: join(options.stateFolder, 's'),
    places: new TaskPlaces({
      identity: options.identity,
      workFolder: options.workFolder,
      stateFolder: options.stateFolder,
    }),
    environment: options.environment,
    maxOutputBytes: options.maxOutputBytes,
    idleAfterMs: options.idleAfterMs,
    onNote: options.onNote,
  })
  await device.open()
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
    taskIdentity: kindOf(options.identity),
    ...(maxAttempts === null ? {} : { maxAttempts }),
    clock: options.clock,
    random: options.random,
    bus: options.bus,
    device,
    storage: options.storage,
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
      await device.close()
      options.storage.close()
    },
  }
}
