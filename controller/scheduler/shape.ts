import type { Mib } from '../../protocol/units.ts'
import type { TaskSpec } from '../domain/task.ts'

export type RequestKind = 'swappable' | 'noswap' | 'exclusive'

/**
 * What of a task, beside its demand, decides where it fits. Pending tasks of one shape wait in one queue: among them feasibility is
 * monotone in the demand, so "who fits next" is one search instead of a walk over all that wait.
 */
export interface Shape {
  readonly key: string
  readonly poolKey: string
  readonly kind: RequestKind
  readonly gpuCount: number
  /** P0 by declared class: it may take P0 victims (specification 8, rule 4). Ageing does not change it. */
  readonly isP0: boolean
}

/** The pool of tasks that target no group. */
export const COMMON_POOL = ''

/** One pool per set of groups that tasks name; a separator that no group name holds. */
export function poolKeyOf(groups: readonly string[]): string {
  return groups.length === 0 ? COMMON_POOL : groups.join('\n')
}

export function kindOf(spec: TaskSpec): RequestKind {
  if (spec.gpuMode === 'exclusive') return 'exclusive'
  return spec.noswap === 1 ? 'noswap' : 'swappable'
}

export function shapeOf(spec: TaskSpec): Shape {
  const poolKey = poolKeyOf(spec.groups)
  const kind = kindOf(spec)
  const isP0 = spec.priority === 0
  return { key: `${kind} ${spec.gpuCount} ${isP0 ? 'p0' : '-'} ${poolKey}`, poolKey, kind, gpuCount: spec.gpuCount, isP0 }
}

/** What a search compares with a GPU's largest admissible demand; an exclusive task without a figure takes whatever is there. */
export function searchDemandMib(spec: TaskSpec): Mib {
  return Math.max(1, spec.vramMib)
}
