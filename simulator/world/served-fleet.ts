/**
 * A scenario's servers over any bus, in real time: `headroom sim serve` connects them to a controller that
 * runs elsewhere. The protocol runs on the real clock; devices may run faster.
 */
import type { Bus } from '../../controller/ports/bus.ts'
import type { ServerCore } from '../../gpu-server/core/server-core.ts'
import type { FaultNote } from './fault-agenda.ts'
import { FaultTally } from '../results/fault-tally.ts'
import { planFleetFaults } from './fleet-agenda.ts'
import { Fleet } from '../fleet/fleet.ts'
import { LinkFaults } from '../network/link-faults.ts'
import type { FaultPlan } from './swarm.ts'
import { DelayedBus } from '../network/delayed-bus.ts'
import type { Workload } from '../fleet/workload.ts'
import { PacedClock } from '../kernel/paced-clock.ts'
import type { RealTime } from '../kernel/paced-clock.ts'
import { createSeededRandom } from '../kernel/seeded-random.ts'

export interface ServedFleetOptions {
  /**
   * Its servers, and their faults, at their times since the start of the fleet: in real time, like leases.
   */
  readonly plan: FaultPlan
  /** The bus of a server, by the node's name. */
  readonly busFor: (node: string) => Bus
  readonly real: RealTime
  /** Device milliseconds per real millisecond: 10 makes tasks and copies ten times as fast. */
  readonly speed: number
  /** Differs at every start, so that boots never repeat. */
  readonly seed: string
  readonly workload: Workload
  /** Called when a fault begins or ends. */
  readonly onFault: FaultNote
  /** The controller refused a server's hello; the reason is a code. */
  readonly onRefused?: (node: string, reason: string) => void
}

export interface ServedFleet {
  /** By node id; running servers only. */
  readonly servers: ReadonlyMap<string, ServerCore>
  start(): void
  /** The bus is connected again. */
  reconnected(): void
  /** The servers stop, with their tasks. */
  stop(): void
}

export function createServedFleet(o: ServedFleetOptions): ServedFleet {
  const random = createSeededRandom(o.seed)
  const clock = new PacedClock(o.real.now(), o.real)
  const fast = atSpeed(o.real, o.speed)
  const deviceClock = o.speed === 1 ? clock : new PacedClock(fast.now(), fast)
  const tally = new FaultTally()
  const links = new LinkFaults(random.stream('faults/links'), tally)
  const bus = new DelayedBus({ clock, busFor: o.busFor, links })
  const { plan, workload, onRefused } = o
  const fleet = new Fleet({
    ...{ nodes: plan.nodes, clock, deviceClock, bus, links, random, workload, tally },
    ...{ isReliable: false, areHeartbeatsElided: false, nodeStateOf: () => null },
    ...(onRefused === undefined ? {} : { onRefused }),
  })
  return {
    servers: fleet.servers,
    start() {
      fleet.start()
      planFleetFaults({ plan, clock, fleet, tally, note: o.onFault })
      clock.begin()
      if (deviceClock !== clock) deviceClock.begin()
    },
    reconnected: () => fleet.reconnected(),
    stop() {
      fleet.stop()
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
