/** A production server core for a simulated node, with the properties of the scenario. */
import type { ServerCoreOptions } from '../../gpu-server/core/server-core.ts'
import { ServerCore } from '../../gpu-server/core/server-core.ts'
import { FEATURES, type Feature } from '../../protocol/units.ts'
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
    features: featuresOf(node),
    ...(node.maxAttempts === undefined ? {} : { maxAttempts: node.maxAttempts }),
    ...ground,
  })
}

/** The name of its random stream: each start of its process has its own. */
export function serverStream({ name }: ScenarioNode, start: number): string {
  return start === 1 ? `server/${name}` : `server/${name}/start ${start}`
}

/** Without a time for it, a node has every image, and says nothing about preparing. */
export function featuresOf({ prepareMs = 0 }: Pick<ScenarioNode, 'prepareMs'>): readonly Feature[] {
  return prepareMs > 0 ? FEATURES : UNPREPARED
}

const UNPREPARED = FEATURES.filter((feature) => feature !== 'prepare')
