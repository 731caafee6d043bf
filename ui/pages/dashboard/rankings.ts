/** Lists of the dashboard, from results that the controller sorted. Pure. */
import type { NodeBody } from '../../../controller/api/nodes/schema.ts'
import { troubleWords } from '../../format/nodes.ts'

/**
 * Each node once, at its first occurrence; nodes without problems are omitted.
 * 1. Unreachable, then silent, then the others.
 * 2. Name.
 */
export function troubled(nodes: readonly NodeBody[]): readonly NodeBody[] {
  const byId = new Map(nodes.toReversed().map((node) => [node.node_id, node]))
  const rank = ({ status }: NodeBody): number => ['unreachable', 'suspect', 'up'].indexOf(status)
  return [...byId.values()]
    .filter((node) => troubleWords(node).length > 0)
    .sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))
}

/** Allocated VRAM in percent of the commit limit; null: the limit is 0. */
export function allocatedPercent({ vram }: Pick<NodeBody, 'vram'>): number | null {
  return vram.commit_limit_mib === 0 ? null : (100 * vram.committed_mib) / vram.commit_limit_mib
}
