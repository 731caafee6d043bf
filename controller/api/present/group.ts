import type { Group } from '../../domain/group.ts'
import type { GroupBody } from '../schema/group.ts'

export function presentGroup(group: Group): GroupBody {
  return { id: group.id, description: group.description, node_ids: group.nodeIds }
}
