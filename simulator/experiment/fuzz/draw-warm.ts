/**
 * Draws tasks that are to stay in VRAM while others cover a need, and tasks with an idle period of their own.
 * From a separate random stream: seeds without the feature do not depend on it.
 */
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry, FuzzDocument } from './document.ts'
import { WARM_FEATURE, type Features } from './features.ts'

type Drawn = Pick<FuzzDocument, 'fleet' | 'config' | 'workload'>

export function drawWarm(dice: FuzzRandom, drawn: Drawn, { on }: Features): Drawn {
  if (!on.has(WARM_FEATURE)) return drawn
  const [warmPercent, ownIdlePercent] = [dice.oneOf([20, 50, 80]), dice.oneOf([0, 30])]
  const workload = drawn.workload.map(({ task }) => {
    const warm = dice.chance(warmPercent) ? { keep_warm: true } : {}
    const idle = dice.chance(ownIdlePercent) ? { idle_swap_out_seconds: dice.oneOf([1, 5, 20, 60]) } : {}
    return { task: { ...(task as Entry), ...warm, ...idle } }
  })
  return { ...drawn, workload }
}
