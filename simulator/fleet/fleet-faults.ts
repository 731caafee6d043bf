/** Which faults a fleet can have by itself, in the service of a controller that the scenario does not run. */
import type { Fault, FaultItem, FaultKind } from '../scenario/fault.ts'
import type { Refuse } from '../document/refusal.ts'
import type { LinkFault } from '../network/link-faults.ts'
import type { MachineFault } from './node-host.ts'

/** Of machines, and of what lies between them and the controller. */
export type FleetFault = LinkFault | MachineFault | Extract<Fault, { readonly kind: 'bounce' }>

/** What each kind breaks; of `disk_full` there is one for the controller, too. */
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
  slow_disk: 'controller',
  disk_full: 'fleet',
  fsync_error: 'controller',
  store_set_back: 'controller',
  gpu_lost: 'fleet',
  slow_swap: 'fleet',
  host_memory_short: 'fleet',
  clock_drift: 'fleet',
}

const WHY = 'where a controller serves others only the fleet may break (headroom sim run breaks the rest)'

export function isFleetFault(fault: Fault): fault is FleetFault {
  return BREAKS[fault.kind] === 'fleet' && !isOfController(fault)
}

/** @param hasBroker the broker is the fleet's own, and may be restarted */
export function refuseBeyondFleet(faults: readonly FaultItem[], refuse: Refuse, hasBroker = false): void {
  const isBeyond = (kind: FaultKind): boolean =>
    BREAKS[kind] === 'controller' || (BREAKS[kind] === 'broker' && !hasBroker)
  for (const [index, fault] of faults.entries()) {
    if (fault.kind === 'swarm') {
      // The full disk that it draws may be the controller's.
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
