import type { Mib } from '../../../protocol/units.ts'
import type { TaskSpec } from '../../../protocol/task.ts'

export type RequestKind = 'swappable' | 'noswap' | 'exclusive'

/**
 * The properties of a task, other than its demand, that decide where it fits. Pending tasks of one shape
 * share a queue: among them feasibility is monotone in the demand, so the next task that fits is found by one
 * search, not a scan.
 */
export interface Shape {
  readonly key: string
  readonly poolKey: string
  readonly kind: RequestKind
  readonly gpuCount: number
  /** P0 by declared priority: it may take P0 victims (specification 8, rule 4). Aging does not change it. */
  readonly isP0: boolean
}

/** The pool of tasks that target no group. */
export const COMMON_POOL = ''

/** One pool per set of groups; no group name contains the separator. */
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

/** With this number of GPUs or more a shape is created for each call. */
const USUAL_GPU_COUNTS = 17

/** For tasks that target no group: by GPU count, others before P0. */
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
 * Returns the demand that a search compares with a GPU's largest admissible demand; an exclusive task without
 * a demand takes any GPU.
 */
export function searchDemandMib(spec: TaskSpec): Mib {
  return Math.max(1, spec.vramMib)
}
