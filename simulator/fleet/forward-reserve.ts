/**
 * Servers learn the reserve with their next heartbeat. Without heartbeats they get it as soon as the change
 * is durable.
 */
import type { Event } from '../../controller/model/event.ts'
import type { Node } from '../../controller/model/placement.ts'
import type { Mib } from '../../protocol/units.ts'

export interface ReserveHolder {
  keepReserve(mib: Mib): void
}

export function forwardReserveChanges(
  events: readonly Event[],
  views: { nodes(): Iterable<Node> },
  servers: ReadonlyMap<string, ReserveHolder>,
): void {
  for (const { kind, nodeId } of events) {
    if (kind !== 'config_changed' && kind !== 'node_config_changed') continue
    for (const node of views.nodes())
      if (nodeId === null || nodeId === node.id)
        servers.get(node.id)?.keepReserve(node.gpus[0]?.reserveMib ?? 0)
  }
}
