/** The machines of a fleet, and the links between them and the controller. All of them may fail. */
import type { Random } from '../../controller/ports/random.ts'
import type { ServerCore } from '../../gpu-server/core/server-core.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { SimulatedDevice } from './simulated-device.ts'
import type { Workload } from './workload.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'
import type { FaultTally } from '../results/fault-tally.ts'
import type { Endpoint } from '../network/sim-bus.ts'
import type { FleetFault } from './fleet-faults.ts'
import type { LinkFaults } from '../network/link-faults.ts'
import type { InitialNodeState, MachineFault } from './node-host.ts'
import { NodeHost } from './node-host.ts'
import { RunTracker } from './run-tracker.ts'

/** The bus of the servers. */
export interface FleetBus {
  endpoint(node: string): Endpoint
  /** Delivers messages that a fault has held until now. */
  deliverHeld(held: readonly (() => void)[]): void
}

export interface FleetOptions {
  readonly nodes: readonly ScenarioNode[]
  readonly clock: SimClock
  /** Clock of the devices; absent: `clock`. */
  readonly deviceClock?: SimClock
  readonly bus: FleetBus
  readonly links: LinkFaults
  readonly random: Random
  readonly workload: Workload
  readonly tally: FaultTally
  /** No machine ever fails. */
  readonly isReliable: boolean
  /** Heartbeats that change nothing are not sent. */
  readonly areHeartbeatsElided: boolean
  /** State that earlier servers left on a node; null: none. */
  readonly nodeStateOf: (nodeId: string) => InitialNodeState | null
  /** The controller refused a server's hello; the reason is a code. */
  readonly onRefused?: (node: string, reason: string) => void
}

export class Fleet {
  readonly runs = new RunTracker()
  /** The running servers, by node id. */
  readonly servers = new Map<string, ServerCore>()
  readonly #bus: FleetBus
  readonly #links: LinkFaults
  /** By name, and by id. */
  readonly #nodes = new Map<string, NodeHost>()
  readonly #byId = new Map<string, NodeHost>()

  constructor({ nodes, nodeStateOf, links, ...options }: FleetOptions) {
    this.#bus = options.bus
    this.#links = links
    const onServer = (id: string, server: ServerCore | null): void => {
      if (server === null) this.servers.delete(id)
      else this.servers.set(id, server)
    }
    for (const node of nodes) {
      const runs = options.isReliable ? null : this.runs.watcherOf(node.name)
      const host = new NodeHost({ ...options, node, runs, onServer, home: nodeStateOf(idOfNode(node)) })
      this.#nodes.set(node.name, host)
      this.#byId.set(host.id, host)
    }
  }

  node(name: string): NodeHost {
    const host = this.#nodes.get(name)
    if (host === undefined) throw new Error(`no node ${name}`)
    return host
  }

  deviceOf(nodeId: string): SimulatedDevice | undefined {
    return this.#byId.get(nodeId)?.device
  }

  /** How far the clock of the node with that id is ahead of true time. */
  aheadMs(nodeId: string): DurationMs {
    return this.#byId.get(nodeId)?.aheadMs ?? 0
  }

  start(): void {
    for (const host of this.#nodes.values()) host.start()
  }

  /** The broker is back. */
  reconnected(): void {
    for (const host of this.#nodes.values()) host.reconnected()
  }

  /** Adds what the devices have counted to the tally. */
  settleTally(): void {
    for (const host of this.#nodes.values()) host.settleTally()
  }

  stop(): void {
    for (const server of this.servers.values()) server.stop()
  }

  begin(fault: FleetFault): void {
    if ('link' in fault) this.#links.begin(fault)
    else if (fault.kind === 'bounce') this.node(fault.node).bounce()
    else this.node(machineOf(fault)).begin(fault)
  }

  end(fault: FleetFault): void {
    if ('link' in fault) this.#bus.deliverHeld(this.#links.end(fault))
    else if (fault.kind !== 'bounce') this.node(machineOf(fault)).end(fault)
  }
}

function machineOf(fault: MachineFault): string {
  return fault.kind === 'disk_full' ? fault.on.node : fault.node
}
