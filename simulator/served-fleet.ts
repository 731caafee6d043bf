/**
 * A scenario's servers over any bus, in real time: what `headroom sim serve` connects to a controller that runs elsewhere. The protocol runs on the
 * real clock; what the devices do may run faster.
 */
import { ServerCore } from '../gpu-server/core/server-core.ts'
import { createMemoryStorage } from '../gpu-server/core/storage.ts'
import type { Bus } from '../controller/ports/bus.ts'
import { idOfNode } from './scenario/node-id.ts'
import { SimulatedDevice } from './fleet/simulated-device.ts'
import type { Workload } from './fleet/workload.ts'
import { PacedClock } from './paced-clock.ts'
import type { RealTime } from './paced-clock.ts'
import type { ScenarioNode } from './scenario/scenario.ts'
import { createSeededRandom } from './seeded-random.ts'

export interface ServedFleetOptions {
  readonly nodes: readonly ScenarioNode[]
  /** The bus that a server speaks over. */
  readonly busFor: (nodeId: string) => Bus
  readonly real: RealTime
  /** Device milliseconds per real millisecond: 10 makes tasks and copies ten times as quick. */
  readonly speed: number
  /** Differs at every start, so that boots never repeat. */
  readonly seed: string
  readonly workload: Workload
}

export interface ServedFleet {
  readonly servers: ReadonlyMap<string, ServerCore>
  start(): void
  /** The bus has found its way again. */
  reconnected(): void
  /** The servers fall silent; their tasks are gone with them. */
  stop(): void
}

export function createServedFleet(o: ServedFleetOptions): ServedFleet {
  const random = createSeededRandom(o.seed)
  const clock = new PacedClock(o.real.now(), o.real)
  const fast = atSpeed(o.real, o.speed)
  const deviceClock = o.speed === 1 ? clock : new PacedClock(fast.now(), fast)
  const servers = new Map(
    o.nodes.map((node) => {
      const nodeId = idOfNode(node)
      const server = new ServerCore({
        nodeId,
        name: node.name,
        address: `${node.name}.sim`,
        hostSwapMib: node.hostSwapMib,
        signalsWanted: true,
        deviceKind: 'simulated',
        allowExec: true,
        clock,
        random: random.stream(`server/${node.name}`),
        bus: o.busFor(nodeId),
        device: new SimulatedDevice(deviceClock, node, o.workload, clock),
        storage: createMemoryStorage(),
        areHeartbeatsElided: false,
      })
      return [nodeId, server] as const
    }),
  )
  return {
    servers,
    start() {
      for (const server of servers.values()) server.start()
      clock.begin()
      if (deviceClock !== clock) deviceClock.begin()
    },
    reconnected() {
      for (const server of servers.values()) server.reconnected()
    },
    stop() {
      for (const server of servers.values()) server.stop()
      clock.stop()
      deviceClock.stop()
    },
  }
}

function atSpeed(real: RealTime, speed: number): RealTime {
  const begin = real.now()
  return {
    now: () => begin + Math.floor((real.now() - begin) * speed),
    after: (ms, fn) => real.after(ms / speed, fn),
    soon: real.soon,
  }
}
