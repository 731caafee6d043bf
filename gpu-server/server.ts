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

const LOOK_EVERY_MS: DurationMs = 50

/**
 * Rejects with AcceleratorFault, StateFault or what the guards say; nothing is left open then but what was
 * handed in.
 */
export async function startGpuServer(o: GpuServerOptions): Promise<GpuServer> {
  const device = new HostDevice({
    guards: o.guards,
    accelerator: o.accelerator,
    clock: o.clock,
    socketFolder: join(o.stateFolder, 's'),
    places: new TaskPlaces({ identity: o.identity, workFolder: o.workFolder, stateFolder: o.stateFolder }),
    environment: o.environment,
    maxOutputBytes: o.maxOutputBytes,
    idleAfterMs: o.idleAfterMs,
    onNote: o.onNote,
  })
  await device.open()
  const maxAttempts = attemptsWithIds(o.identity)
  const core = new ServerCore({
    nodeId: o.nodeId,
    name: o.name,
    address: o.address,
    hostSwapMib: o.hostSwapMib,
    hostLinkMibPerS: o.hostLinkMibPerS,
    signalsWanted: o.accelerator.signalsWanted,
    deviceKind: o.accelerator.kind,
    allowExec: o.allowExec,
    taskIdentity: kindOf(o.identity),
    ...(maxAttempts === null ? {} : { maxAttempts }),
    clock: o.clock,
    random: o.random,
    bus: o.bus,
    device,
    storage: o.storage,
    areHeartbeatsElided: false,
    onRefused: o.onRefused,
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
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
      return core.isQuiet
    },
    async close() {
      core.stop()
      await device.close()
      o.storage.close()
    },
  }
}
