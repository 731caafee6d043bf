import type { Mib } from '../../protocol/units.ts'
import type { TaskSpec } from '../domain/task.ts'

export type RequestKind = 'swappable' | 'noswap' | 'exclusive'

/**
 * What of a task, beside its demand, decides where it fits. Pending tasks of one shape wait in one queue:
 * among them feasibility is monotone in the demand, so "who fits next" is one search instead of a walk over
 * all that wait.
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
  const kind = kindOf(spec)
  const { gpuCount, groups } = spec
  const isP0 = spec.priority === 0
  if (groups.length > 0 || gpuCount >= USUAL_GPU_COUNTS)
    return newShape(kind, gpuCount, isP0, poolKeyOf(groups))
  return USUAL_SHAPES[kind][2 * gpuCount + (isP0 ? 1 : 0)] as Shape
}

function newShape(kind: RequestKind, gpuCount: number, isP0: boolean, poolKey: string): Shape {
  return { key: `${kind} ${gpuCount} ${isP0 ? 'p0' : '-'} ${poolKey}`, poolKey, kind, gpuCount, isP0 }
}

/** Above these a shape is made anew for each task that asks. */
const USUAL_GPU_COUNTS = 17

/** Of tasks that target no group: by GPU count, the others before P0. */
const USUAL_SHAPES: Readonly<Record<RequestKind, readonly Shape[]>> = {
  swappable: usualShapes('swappable'),
  noswap: usualShapes('noswap'),
  exclusive: usualShapes('exclusive'),
}

function usualShapes(kind: RequestKind): readonly Shape[] {
  return Array.from({ length: 2 * USUAL_GPU_COUNTS }, (_, place) =>
    newShape(kind, place >>> 1, place % 2 === 1, COMMON_POOL),
  )
}

/**
 * What a search compares with a GPU's largest admissible demand; an exclusive task without a figure takes
 * whatever is there.
 */
export function searchDemandMib(spec: TaskSpec): Mib {
  return Math.max(1, spec.vramMib)
}
