/**
 * What checkers see of a run besides its events: requests of clients, the fleet, and the state of the GPU
 * servers. Nothing of the controller's state.
 */
import type { ConfigFields } from '../../controller/model/config.ts'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import type { Event } from '../../controller/model/event.ts'
import type { StoredState } from '../../controller/ports/store.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { GpuMode, Instant, Mib, NoSwap, Priority } from '../../protocol/units.ts'
import type { FaultInjector } from '../world/fault-injector.ts'
import type { BusWatcher } from '../network/sim-bus.ts'
import type { LostHistory } from '../world/store-history.ts'
import type { DoubleRun } from '../fleet/run-tracker.ts'
import type { World } from '../world/world.ts'

/** A node as the scenario describes it; overrides arrive as events. */
export interface ObservedNode {
  readonly id: string
  readonly name: string
  readonly gpuCount: number
  readonly physicalMib: Mib
  readonly hostSwapMib: Mib
}

/** The current request of a client. */
export interface ObservedRequest {
  readonly vramMib: Mib
  readonly gpuCount: number
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly groups: readonly string[]
  /** Absent: the setting of the cluster. */
  readonly idleSwapOutSeconds?: number | null
  readonly keepWarm?: boolean | undefined
}

/** An attempt on a server, as the server reports it. */
export interface ObservedAttempt {
  readonly attempt: number
  readonly gpus: readonly number[]
  /** VRAM per GPU. */
  readonly residentMib: Mib
  readonly noswap: NoSwap
  readonly residency: 'none' | 'resident' | 'swapping_out' | 'swapped_out' | 'swapping_in'
  readonly wantsGpu: boolean
  readonly lastUseAt: Instant
}

export interface Observed {
  /** Configuration at the start. */
  readonly config: ConfigFields
  readonly nodes: readonly ObservedNode[]
  /** State at the start, as the scenario defines it; absent: an empty cluster. */
  readonly start?: StoredState
  now(): Instant
  /** By task id; for a server that is down, the attempts that continue under their guards. */
  attemptsOn(nodeId: string): ReadonlyMap<string, ObservedAttempt>
  /** VRAM of the GPU used by other processes, as the device knows it. Absent: none. */
  foreignMib?(nodeId: string, gpu: number): Mib
  /** Null in a world without faults. */
  readonly faults: ObservedFaults | null
  /** Null for a task that has ended. */
  requestOf(taskId: string): ObservedRequest | null
  /** Calls with every batch of events, in order. */
  listen(listener: (events: readonly Event[]) => void): void
}

/** The part of a run with faults that checkers observe. */
export interface ObservedFaults {
  /** Names of the nodes on which the task runs, according to the devices; a frozen process does not run. */
  runsOn(taskId: string): readonly string[]
  /** Tasks that ran on two nodes at once since the last call. */
  takeDoubles(): readonly DoubleRun[]
  /** The controller may know less of the node than its server. */
  isDisturbed(nodeId: string): boolean
  /** Since when no fault is active or planned; null while one is. */
  healedAt(): Instant | null
  /** GPUs of the node that work, or will again. */
  usableGpus(nodeId: string): number
  /** Tasks whose submission was acknowledged and whose end is not durable. */
  readonly acknowledged: ReadonlySet<string>
  /** The current controller has the task. */
  hasOpenTask(taskId: string): boolean
  config(): ConfigFields
  controllersBegun(): number
  /** Calls with every controller that has read what is durable. */
  onControllerBegun(listener: () => void): void
  isControllerUp(): boolean
  /** Two controllers live: a message may have reached only the one that has lost the store. */
  isControllerContested(): boolean
  /** The controller that started last. */
  controller(): ObservedController
  /** A node may lose its disk, and with it what it had heard of. */
  readonly mayForget: boolean
  /** Calls when the store has lost a part of its history. */
  onSetBack(listener: (lost: LostHistory) => void): void
  /** Sees the messages between controllers and nodes. */
  watchBus(watcher: BusWatcher): void
}

export interface ObservedController {
  readonly epoch: number
  /** Id of its process. */
  readonly process: string
  /** When it read the store. */
  readonly startedAt: Instant
}

const NO_ATTEMPTS: ReadonlyMap<string, ObservedAttempt> = new Map()

export function observe(world: World): Observed {
  const { nodes, config } = world.plan
  return {
    config: { ...DEFAULT_CONFIG, ...config },
    nodes: nodes.map((node) => ({
      id: idOfNode(node),
      name: node.name,
      gpuCount: node.gpuCount,
      physicalMib: node.gpu.vramMib,
      hostSwapMib: node.hostSwapMib,
    })),
    ...(world.stored === null ? {} : { start: world.stored }),
    now: () => world.clock.now(),
    foreignMib: (nodeId, gpu) => world.foreignMib(nodeId, gpu),
    attemptsOn: (nodeId) => attemptsOn(world, nodeId),
    faults: world.faults === null ? null : observeFaults(world, world.faults),
    requestOf: (taskId) => world.controller.views.openTask(taskId)?.spec ?? null,
    listen: (listener) => world.listen(listener),
  }
}

/** In true time: the clock of a server may be ahead or behind. */
function attemptsOn({ fleet }: World, nodeId: string): ReadonlyMap<string, ObservedAttempt> {
  const server = fleet.servers.get(nodeId)
  if (server === undefined) return NO_ATTEMPTS
  const aheadMs = fleet.aheadMs(nodeId)
  if (aheadMs === 0) return server.attempts
  return new Map(
    [...server.attempts].map(([id, attempt]) => [id, { ...attempt, lastUseAt: attempt.lastUseAt - aheadMs }]),
  )
}

function observeFaults(world: World, faults: FaultInjector): ObservedFaults {
  const nameOf = new Map(world.plan.nodes.map((node) => [idOfNode(node), node.name]))
  return {
    runsOn: (taskId) => world.fleet.runs.nodesOf(taskId),
    takeDoubles: () => world.fleet.runs.takeDoubles(),
    isDisturbed: (nodeId) => faults.isDisturbed(nameOf.get(nodeId) ?? ''),
    healedAt: () => faults.healedAt,
    usableGpus: (nodeId) => world.fleet.node(nameOf.get(nodeId) ?? '').usableGpus,
    acknowledged: faults.acknowledged,
    hasOpenTask: (taskId) => world.controller.views.openTask(taskId) !== undefined,
    config: () => world.controller.views.config().fields,
    controllersBegun: () => world.controllers.begun,
    onControllerBegun: (listener) => world.controllers.onBegun(listener),
    isControllerUp: () => world.isControllerUp,
    isControllerContested: () => world.controllers.isContested,
    controller: () => ({
      epoch: world.controller.status.epoch,
      process: world.controller.status.process,
      startedAt: world.controllers.startedAt,
    }),
    mayForget: world.plan.faults?.some(({ kind }) => kind === 'node_disk_lost' || kind === 'swarm') === true,
    onSetBack: (listener) => faults.onSetBack(listener),
    watchBus: (watcher) => world.bus.watch(watcher),
  }
}
