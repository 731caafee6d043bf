/** Formats the reasons of a wait, one per line. */
import type { Task } from '../../clients/typescript/client.ts'
import { size } from '../output/figures.ts'

type Wait = NonNullable<Task['wait']>
type Reason = Pick<Wait, 'reason' | 'node_count' | 'have_mib' | 'need_mib'>

/** The decisive reason, then the others: `WAITING_VRAM on 3 nodes: has 4Gi, needs 16Gi`. */
export function reasonLines(wait: Wait): readonly string[] {
  return [wait, ...wait.secondary].map(reasonLine)
}

function reasonLine({ reason, node_count: nodes, have_mib: have, need_mib: need }: Reason): string {
  const where = nodes === 0 ? '' : ` on ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`
  const figures = [
    have === null ? '' : `has ${size(have)}`,
    need === null ? '' : `needs ${size(need)}`,
  ].filter((text) => text !== '')
  return `${reason}${where}${figures.length === 0 ? '' : `: ${figures.join(', ')}`}`
}
