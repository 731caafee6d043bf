/** Places the names of points so that they overlap neither each other, nor a point, nor the edge. Pure. */

export interface LabelledPoint {
  readonly x: number
  readonly y: number
  /** Width of the name. */
  readonly width: number
}

export interface LabelRoom {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
  /** Height of a name. */
  readonly height: number
  /** Distance between a point and its name. */
  readonly gap: number
}

export interface LabelPlace {
  /** Left edge and vertical centre. */
  readonly left: number
  readonly middle: number
}

/** Vertical distances to try, in heights of a name. */
const STEPS = [0, 1, 2, 3]

interface Box {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

/**
 * Each point takes the first free place; null: no free place, only the readout names the point.
 * 1. Nearer to the height of the point.
 * 2. Right of it, then left, then centred.
 * 3. Above it, then below.
 */
export function labelPlaces(
  points: readonly LabelledPoint[],
  room: LabelRoom,
): readonly (LabelPlace | null)[] {
  const taken: Box[] = points.map(({ x, y }) => ({
    left: x - room.gap / 2,
    right: x + room.gap / 2,
    top: y - room.gap / 2,
    bottom: y + room.gap / 2,
  }))
  return points.map((point) => {
    for (const place of placesOf(point, room)) {
      const box = boxOf(place, point.width, room.height)
      const isInside =
        box.left >= room.left && box.right <= room.right && box.top >= room.top && box.bottom <= room.bottom
      if (!isInside || taken.some((other) => covers(box, other))) continue
      taken.push(box)
      return place
    }
    return null
  })
}

function placesOf({ x, y, width }: LabelledPoint, { height, gap }: LabelRoom): readonly LabelPlace[] {
  const [above, below] = [y - gap / 2 - height / 2, y + gap / 2 + height / 2]
  const lefts = [x + gap, x - gap - width, x - width / 2]
  return STEPS.flatMap((step) =>
    lefts.flatMap((left) =>
      [above - step * height, below + step * height].map((middle) => ({ left, middle })),
    ),
  )
}

function boxOf({ left, middle }: LabelPlace, width: number, height: number): Box {
  return { left, right: left + width, top: middle - height / 2, bottom: middle + height / 2 }
}

function covers(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}
