/** Figures of several nodes together. Pure. */
import type { NodeBody } from '../../../controller/api/schema/node.ts'

export interface NodeSum {
  readonly gpus: number
  readonly physicalMib: number
  readonly committedMib: number
  readonly schedulableMib: number
}

export function sumOf(nodes: readonly Pick<NodeBody, 'gpus' | 'vram'>[]): NodeSum {
  const sum = (of: (node: Pick<NodeBody, 'gpus' | 'vram'>) => number): number => nodes.reduce((total, node) => total + of(node), 0)
  return {
    gpus: sum(({ gpus }) => gpus.length),
    physicalMib: sum(({ vram }) => vram.physical_mib),
    committedMib: sum(({ vram }) => vram.committed_mib),
    schedulableMib: sum(({ vram }) => vram.effective_schedulable_mib),
  }
}
