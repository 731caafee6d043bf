/** Who stands first in the lists of the dashboard. Pure. */
import type { NodeBody } from '../../../controller/api/schema/node.ts'
import type { TaskBody } from '../../../controller/api/schema/task.ts'

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

/** By who waits for bytes there, then by the share of what is promised, then by name. */
export function hottest(nodes: readonly NodeBody[]): readonly HotNode[] {
  return nodes
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
