/** Who stands first in the lists of the dashboard. Pure. */
import type { NodeBody } from '../../../controller/api/schema/node.ts'
import type { TaskBody } from '../../../controller/api/schema/task.ts'
import { troubleWords } from '../../format/nodes.ts'

const SHOWN = 8

/** By starvation, then by submission. Who is not starved is left out. */
export function mostStarved(tasks: readonly TaskBody[]): readonly TaskBody[] {
  return tasks
    .filter((task) => task.starvation_percent.total > 0)
    .sort((a, b) => b.starvation_percent.total - a.starvation_percent.total || a.seq - b.seq)
    .slice(0, SHOWN)
}

export interface HotNode {
  readonly node: NodeBody
  /** Promised, of what may be promised; null: nothing may be. */
  readonly allocatedPercent: number | null
}

/**
 * Each node once, as it was told first; whom nothing is wrong with is left out.
 * 1. Out of reach, then silent, then the others.
 * 2. Name.
 */
export function troubled(nodes: readonly NodeBody[]): readonly NodeBody[] {
  const byId = new Map(nodes.toReversed().map((node) => [node.node_id, node]))
  const rank = ({ status }: NodeBody): number => ['unreachable', 'suspect', 'up'].indexOf(status)
  return [...byId.values()].filter((node) => troubleWords(node).length > 0).sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))
}

/** Of those that answer: by who waits for bytes there, then by the share of what is promised, then by name. */
export function hottest(nodes: readonly NodeBody[]): readonly HotNode[] {
  return nodes
    .filter(({ status }) => status !== 'unreachable')
    .map((node) => ({ node, allocatedPercent: shareOf(node) }))
    .sort(
      (a, b) =>
        b.node.queue_length - a.node.queue_length ||
        (b.allocatedPercent ?? -1) - (a.allocatedPercent ?? -1) ||
        (a.node.name < b.node.name ? -1 : 1),
    )
    .slice(0, SHOWN)
}

function shareOf({ vram }: NodeBody): number | null {
  return vram.commit_limit_mib === 0 ? null : (100 * vram.committed_mib) / vram.commit_limit_mib
}
