/**
 * Servers learn the reserve with their next heartbeat; where heartbeats are not enacted they are told as soon
 * as it is durable.
 */
import type { Event } from '../../controller/model/event.ts'
import type { Node } from '../../controller/model/placement.ts'
import type { Mib } from '../../protocol/units.ts'

/** What of a server this needs. */
export interface ReserveHolder {
  keepReserve(mib: Mib): void
}

export function forwardReserveChanges(
  events: readonly Event[],
  nodes: () => Iterable<Node>,
  serverOf: (nodeId: string) => ReserveHolder | undefined,
): void {
  for (const { kind, nodeId } of events) {
    if (kind !== 'config_changed' && kind !== 'node_config_changed') continue
    for (const node of nodes())
      if (nodeId === null || nodeId === node.id) serverOf(node.id)?.keepReserve(node.gpus[0]?.reserveMib ?? 0)
  }
}
