/**
 * Finds where a concave rising curve bends most: the Kneedle algorithm, offline. V. Satopää, J. Albrecht, D.
 * Irwin, B. Raghavan, "Finding a 'Kneedle' in a Haystack: Detecting Knee Points in System Behavior", ICDCSW
 * 2011. Without its smoothing: the points are means over seeds already.
 */

export interface CurvePoint {
  readonly x: number
  readonly y: number
}

/**
 * S of the paper: the number of flat steps for which the curve must stay below its bend. 1 is the authors'
 * choice for curves that are known completely.
 */
const SENSITIVITY = 1
const LEAST_POINTS = 3

/**
 * Returns the x of the first knee; null if there is no knee: fewer than three points, a straight line, a
 * convex curve. Only the part up to the highest point is examined, because the method is for rising curves.
 * @param points x strictly rising
 */
export function kneeOf(points: readonly CurvePoint[]): number | null {
  const rising = points.slice(0, indexOfHighest(points) + 1)
  const [first, last] = [rising[0], rising.at(-1)]
  if (rising.length < LEAST_POINTS || first === undefined || last === undefined) return null
  const lowest = Math.min(...rising.map(({ y }) => y))
  const differences = rising.map(
    ({ x, y }) => (y - lowest) / (last.y - lowest) - (x - first.x) / (last.x - first.x),
  )
  return rising[firstKnee(differences)]?.x ?? null
}

/**
 * Index of the first local maximum of the differences after which they fall below its threshold before the
 * next one; -1: no such maximum.
 */
function firstKnee(differences: readonly number[]): number {
  const drop = SENSITIVITY / (differences.length - 1)
  let candidate = -1
  for (let i = 1; i < differences.length; i++) {
    const [before, here, after] = [differences[i - 1], differences[i], differences[i + 1]] as [
      number,
      number,
      number | undefined,
    ]
    if (candidate >= 0 && here < (differences[candidate] as number) - drop) return candidate
    if (after !== undefined && before < here && here >= after) candidate = i
  }
  return -1
}

/** The first of the highest points. */
function indexOfHighest(points: readonly CurvePoint[]): number {
  let highest = 0
  for (const [i, { y }] of points.entries()) if (y > (points[highest] as CurvePoint).y) highest = i
  return highest
}
