/** The kinds of requests that a pool indexes, each in its own column. */
import type { PlacementTiming } from '../../policy/placement/score.ts'
import type { RequestKind } from '../../policy/placement/shape.ts'

/**
 * Now: one column per kind. After a swap: two per kind, for P0 and others; exclusive tasks wait for no swap.
 */
export const KINDS_NOW: readonly RequestKind[] = ['swappable', 'noswap', 'exclusive']
export const KINDS_AFTER: readonly RequestKind[] = ['swappable', 'noswap']

/** Returns the column of such a request. */
export function requestColumnOf(when: PlacementTiming, kind: RequestKind, isP0: boolean): number {
  const place = kind === 'swappable' ? 0 : kind === 'noswap' ? 1 : 2
  return when === 'now' ? place : 2 * place + (isP0 ? 1 : 0)
}

/** Returns the kind of request of a column. */
export function kindOfColumn(when: PlacementTiming, column: number): RequestKind {
  return (when === 'now' ? KINDS_NOW[column] : KINDS_AFTER[column >>> 1]) as RequestKind
}
