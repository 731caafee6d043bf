import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { ScenarioNode } from './scenario.ts'

/** Returns the controller's id of a scenario's node. */
export function idOfNode({ id, name }: Pick<ScenarioNode, 'id' | 'name'>): string {
  return id ?? nodeIdFromName(name)
}
