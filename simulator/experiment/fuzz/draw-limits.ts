/**
 * Draws servers that hold few attempts at once. From a separate random stream: the other draws of a seed do
 * not depend on it.
 */
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry } from './document.ts'
import type { Features } from './features.ts'

export function drawLimits(dice: FuzzRandom, fleet: readonly Entry[], { on }: Features): readonly Entry[] {
  if (!on.has('few_attempts')) return fleet
  return fleet.map((entry) =>
    dice.chance(60) ? { ...entry, max_attempts: dice.oneOf([1, 2, 3, 5]) } : entry,
  )
}
