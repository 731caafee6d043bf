/** A run of pieces of the swap arena. */
export interface Extent {
  /** Zero-based index of the first piece. */
  readonly first: number
  readonly count: number
}

/**
 * Returns `count` free pieces in order, or null when fewer are free. First fit, in this order:
 * 1. warm pieces, whose memory exists already;
 * 2. lower indexes.
 * @param total number of pieces of the arena
 * @param taken may overlap and may reach beyond `total`
 */
export function takePieces(
  total: number,
  taken: readonly Extent[],
  count: number,
  isWarm: (piece: number) => boolean,
): readonly Extent[] | null {
  const free = piecesOf(freeExtents(total, taken))
  if (free.length < count) return null
  const warm = free.filter(isWarm)
  const cold = warm.length < count ? free.filter((piece) => !isWarm(piece)) : []
  return extentsOf([...warm, ...cold].slice(0, count))
}

/** The pieces below `total` that no extent takes. */
export function freeExtents(total: number, taken: readonly Extent[]): readonly Extent[] {
  const free: Extent[] = []
  let next = 0
  for (const { first, count } of [...taken].sort((a, b) => a.first - b.first)) {
    free.push({ first: next, count: Math.min(first, total) - next })
    next = Math.max(next, first + count)
  }
  free.push({ first: next, count: total - next })
  return free.filter(({ count }) => count > 0)
}

export function piecesOf(extents: readonly Extent[]): readonly number[] {
  return extents.flatMap(({ first, count }) => Array.from({ length: count }, (_, index) => first + index))
}

/** @param pieces in any order, each once */
export function extentsOf(pieces: readonly number[]): readonly Extent[] {
  const extents: { first: number; count: number }[] = []
  for (const piece of [...pieces].sort((a, b) => a - b)) {
    const last = extents.at(-1)
    if (last !== undefined && last.first + last.count === piece) last.count++
    else extents.push({ first: piece, count: 1 })
  }
  return extents
}

/** Number of pieces from the start of the arena to the end of the last extent. */
export function endOf(extents: readonly Extent[]): number {
  return extents.reduce((end, { first, count }) => Math.max(end, first + count), 0)
}
