/** A production server core for a simulated node, with the properties of the scenario. */
import type { ServerCoreOptions } from '../../gpu-server/core/server-core.ts'
import { ServerCore } from '../../gpu-server/core/server-core.ts'
import { FEATURES } from '../../protocol/units.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'

/** Its ports, with a separate `random` for each start. */
export type ServerGround = Pick<
  ServerCoreOptions,
  'clock' | 'random' | 'bus' | 'device' | 'storage' | 'areHeartbeatsElided' | 'onRefused'
>

export function simulatedServer(node: ScenarioNode, ground: ServerGround): ServerCore {
  return new ServerCore({
    nodeId: idOfNode(node),
    name: node.name,
    address: `${node.name}.sim`,
    hostSwapMib: node.hostSwapMib,
    hostLinkMibPerS: node.hostLinkMibPerS ?? null,
    signalsWanted: node.signalsWanted ?? true,
    deviceKind: 'simulated',
    allowExec: true,
    features: FEATURES,
    ...(node.maxAttempts === undefined ? {} : { maxAttempts: node.maxAttempts }),
    ...ground,
  })
}

/** The name of its random stream: each start of its process has its own. */
export function serverStream({ name }: ScenarioNode, start: number): string {
  return start === 1 ? `server/${name}` : `server/${name}/start ${start}`
}
