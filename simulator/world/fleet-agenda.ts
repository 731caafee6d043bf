/**
 * Schedules the faults of a fleet with a controller outside of the scenario: each at its time since the start
 * of the fleet.
 */
import type { Clock } from '../../controller/ports/clock.ts'
import type { Fault } from '../scenario/fault.ts'
import type { FaultNote } from './fault-agenda.ts'
import { FaultAgenda } from './fault-agenda.ts'
import type { FaultTally } from '../results/fault-tally.ts'
import type { SimBus } from '../network/sim-bus.ts'
import { isFleetFault } from '../fleet/fleet-faults.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { FaultPlan } from './swarm.ts'
import { faultsDrawn } from './swarm.ts'

export interface FleetFaultsOptions {
  readonly plan: FaultPlan
  readonly clock: Clock
  readonly fleet: Fleet
  readonly tally: FaultTally
  readonly note: FaultNote
  /** The fleet's broker; absent: the broker is a real one. */
  readonly broker?: Pick<SimBus, 'stopBroker' | 'startBroker'>
}

/** Other faults are refused when the scenario is loaded (`refuseBeyondFleet`). */
export function planFleetFaults({ plan, clock, fleet, tally, note, broker }: FleetFaultsOptions): void {
  const begin = (fault: Fault): void => {
    if (isFleetFault(fault)) return fleet.begin(fault)
    if (fault.kind !== 'restart_broker' || broker === undefined)
      throw new Error(`broken invariant: ${fault.kind} is beyond the fleet`)
    broker.stopBroker()
    tally.fires(fault.kind)
  }
  const end = (fault: Fault): void => {
    if (isFleetFault(fault)) fleet.end(fault)
    else if (broker?.startBroker() === true) fleet.reconnected()
  }
  new FaultAgenda({
    clock,
    startedAt: clock.now(),
    faults: faultsDrawn(plan),
    stage: { begin, end },
    tally,
    note,
  }).plan()
}
