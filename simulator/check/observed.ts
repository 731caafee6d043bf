/**
 * What checkers see of a run beside its events: what clients asked for, what the fleet is made of, and what the GPU servers hold. Nothing of
 * the controller's own books.
 */
import type { ConfigFields } from '../../controller/domain/config.ts'
import { DEFAULT_CONFIG } from '../../controller/domain/config.ts'
import type { Event } from '../../controller/domain/event.ts'
import type { StoredState } from '../../controller/ports/store.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { GpuMode, Instant, Mib, NoSwap, Priority } from '../../protocol/units.ts'
import type { World } from '../world.ts'

/** A node as its maker describes it; its overrides arrive as events. */
export interface ObservedNode {
  readonly id: string
  readonly name: string
  readonly gpuCount: number
  readonly physicalMib: Mib
  readonly hostSwapMib: Mib
}

/** What a client asked for, as it stands now. */
export interface ObservedRequest {
  readonly vramMib: Mib
  readonly gpuCount: number
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly groups: readonly string[]
}

/** One attempt that lives on a server, in the server's own words. */
export interface ObservedAttempt {
  readonly attempt: number
  readonly gpus: readonly number[]
  /** What it holds in VRAM on each of them. */
  readonly residentMib: Mib
  readonly noswap: NoSwap
  readonly residency: 'none' | 'resident' | 'swapping_out' | 'swapped_out' | 'swapping_in'
  readonly wantsGpu: boolean
  readonly lastUseAt: Instant
}

export interface Observed {
  /** What holds at the start. */
  readonly config: ConfigFields
  readonly nodes: readonly ObservedNode[]
  /** What is there when the run begins, as its scenario says; left out: nothing. */
  readonly start?: StoredState
  now(): Instant
  /** By task id; of a server that is down, what lives on under its guards. */
  attemptsOn(nodeId: string): ReadonlyMap<string, ObservedAttempt>
  /** VRAM of that GPU that others hold, as the device knows it. Left out: none anywhere. */
  foreignMib?(nodeId: string, gpu: number): Mib
  /** Null for a task that is over. */
  requestOf(taskId: string): ObservedRequest | null
  /** Calls with every batch of events, in order. */
  listen(listener: (events: readonly Event[]) => void): void
}

const NOBODY: ReadonlyMap<string, ObservedAttempt> = new Map()

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
    attemptsOn: (nodeId) => world.servers.get(nodeId)?.attempts ?? NOBODY,
    foreignMib: (nodeId, gpu) => world.foreignMib(nodeId, gpu),
    requestOf: (taskId) => world.controller.views.openTask(taskId)?.spec ?? null,
    listen: (listener) => world.listen(listener),
  }
}
