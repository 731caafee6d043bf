/**
 * The servers of a fleet in real time, and the bus between them and the controller: with what breaks, if the
 * scenario says so.
 */
import type { Bus } from '../../controller/ports/bus.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { ServerCore } from '../../gpu-server/core/server-core.ts'
import { createMemoryStorage, EMPTY_NODE_STATE } from '../../gpu-server/core/storage.ts'
import type { FaultNote } from './fault-agenda.ts'
import { FaultTally } from '../results/fault-tally.ts'
import { FaultyBus } from '../network/faulty-bus.ts'
import { planFleetFaults } from './fleet-agenda.ts'
import { FaultyFleet } from '../fleet/faulty-fleet.ts'
import { LinkFaults } from '../network/link-faults.ts'
import { SimulatedDevice } from '../fleet/simulated-device.ts'
import type { Workload } from '../fleet/workload.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { Scenario } from '../scenario/scenario.ts'
import { SimBus } from '../network/sim-bus.ts'
import { serverStream, simulatedServer } from '../fleet/simulated-server.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'

export interface LiveServersOptions {
  readonly scenario: Scenario
  readonly clock: SimClock
  readonly random: Random
  readonly workload: Workload
  /** Of the boots before this process: each start of it is a later boot of its servers. */
  readonly bootCounter: number
  readonly onFault: FaultNote
}

export interface LiveServers {
  /** The controller's end. */
  readonly bus: Bus
  /** Heartbeats that change nothing are not sent. */
  readonly areHeartbeatsElided: boolean
  /** By node id; of those whose process runs. */
  readonly servers: ReadonlyMap<string, ServerCore>
  start(): void
  stop(): void
}

export function liveServers(options: LiveServersOptions): LiveServers {
  return options.scenario.faults.length === 0 ? reliableServers(options) : faultyServers(options)
}

function reliableServers({
  scenario,
  clock,
  random,
  workload,
  bootCounter,
}: LiveServersOptions): LiveServers {
  const bus = new SimBus({ clock, mode: 'reference', delayMs: 0 })
  const servers = new Map(
    scenario.nodes.map((node) => {
      const device = new SimulatedDevice(clock, node, workload)
      const ground = {
        clock,
        bus,
        device,
        storage: createMemoryStorage(bootCounter),
        areHeartbeatsElided: true,
      }
      return [
        idOfNode(node),
        simulatedServer(node, { ...ground, random: random.stream(serverStream(node, 1)) }),
      ] as const
    }),
  )
  return {
    ...{ bus, servers, areHeartbeatsElided: true },
    start() {
      for (const server of servers.values()) server.start()
    },
    stop() {
      for (const server of servers.values()) server.stop()
    },
  }
}

function faultyServers({
  scenario,
  clock,
  random,
  workload,
  bootCounter,
  onFault,
}: LiveServersOptions): LiveServers {
  const tally = new FaultTally()
  const links = new LinkFaults(random.stream('faults/links'), tally)
  const bus = new FaultyBus({ clock, mode: 'reference', weather: links })
  const home = { state: { ...EMPTY_NODE_STATE, bootCounter }, initialProcesses: [] }
  const stage = new FaultyFleet({
    nodes: scenario.nodes,
    clock,
    bus,
    links,
    random,
    workload,
    tally,
    nodeStateOf: () => home,
  })
  return {
    ...{ bus: bus.endpoint(null), servers: stage.servers, areHeartbeatsElided: false },
    start() {
      stage.start()
      planFleetFaults({ plan: scenario, clock, stage, tally, note: onFault, broker: bus })
    },
    stop: () => stage.stop(),
  }
}
