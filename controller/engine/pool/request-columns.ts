/** The kinds of requests that a pool compares side by side, each in a lane of its own. */
import type { PlacementTiming } from '../../scheduler/score.ts'
import type { RequestKind } from '../../scheduler/shape.ts'

/**
 * Now: one lane a kind. After a swap: two a kind, for P0 and the others; an exclusive task waits for no swap.
 */
export const KINDS_NOW: readonly RequestKind[] = ['swappable', 'noswap', 'exclusive']
export const KINDS_AFTER: readonly RequestKind[] = ['swappable', 'noswap']

/** Where the answer for such a request stands. */
export function requestColumnOf(when: PlacementTiming, kind: RequestKind, isP0: boolean): number {
  const place = kind === 'swappable' ? 0 : kind === 'noswap' ? 1 : 2
  return when === 'now' ? place : 2 * place + (isP0 ? 1 : 0)
}

/** The kind of request that a lane answers. */
export function kindOfColumn(when: PlacementTiming, column: number): RequestKind {
  return (when === 'now' ? KINDS_NOW[column] : KINDS_AFTER[column >>> 1]) as RequestKind
}
