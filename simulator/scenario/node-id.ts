import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { ScenarioNode } from './scenario.ts'

/** What the controller knows a scenario's node by. */
export function idOfNode({ id, name }: Pick<ScenarioNode, 'id' | 'name'>): string {
  return id ?? nodeIdFromName(name)
}
