/** The faults that a fleet can have by itself if the scenario does not run the controller. */
import type { Fault, FaultItem, FaultKind } from '../scenario/fault.ts'
import type { Refuse } from '../document/refusal.ts'
import type { LinkFault } from '../network/link-faults.ts'
import type { MachineFault } from './node-host.ts'

/** Faults of machines, and of the links between them and the controller. */
export type FleetFault = LinkFault | MachineFault | Extract<Fault, { readonly kind: 'bounce' }>

/** The target of each kind; `disk_full` also exists for the controller. */
const BREAKS: Readonly<Record<FaultKind, 'fleet' | 'broker' | 'controller'>> = {
  crash: 'fleet',
  bounce: 'fleet',
  node_disk_lost: 'fleet',
  partition: 'fleet',
  hold: 'fleet',
  delay: 'fleet',
  drop: 'fleet',
  duplicate: 'fleet',
  reorder: 'fleet',
  restart_broker: 'broker',
  restart_controller: 'controller',
  crash_controller: 'controller',
  second_controller: 'controller',
  lease_lost: 'controller',
  store_frozen: 'controller',
  store_failover: 'controller',
  slow_disk: 'controller',
  disk_full: 'fleet',
  fsync_error: 'controller',
  store_set_back: 'controller',
  gpu_lost: 'fleet',
  slow_swap: 'fleet',
  host_memory_short: 'fleet',
  clock_drift: 'fleet',
  hook_hangs: 'fleet',
  hook_late: 'fleet',
  hook_lies: 'fleet',
  hook_errs: 'fleet',
  hook_dies: 'fleet',
}

const WHY = 'a served fleet has no faults of the controller (headroom sim run has)'

export function isFleetFault(fault: Fault): fault is FleetFault {
  return BREAKS[fault.kind] === 'fleet' && !isOfController(fault)
}

/** @param hasBroker the broker belongs to the fleet and may be restarted */
export function refuseBeyondFleet(faults: readonly FaultItem[], refuse: Refuse, hasBroker = false): void {
  const isBeyond = (kind: FaultKind): boolean =>
    BREAKS[kind] === 'controller' || (BREAKS[kind] === 'broker' && !hasBroker)
  for (const [index, fault] of faults.entries()) {
    if (fault.kind === 'swarm') {
      // A drawn full disk may be the controller's.
      const beyond = fault.kinds.filter((kind) => isBeyond(kind) || kind === 'disk_full')
      if (beyond.length > 0)
        refuse(['faults', index, 'swarm', 'kinds'], `must leave out ${beyond.join(', ')}: ${WHY}`)
    } else if (isBeyond(fault.kind) || isOfController(fault))
      refuse(['faults', index], `${fault.kind}: ${WHY}`)
  }
}

function isOfController(fault: Fault): boolean {
  return fault.kind === 'disk_full' && fault.on === 'controller'
}
