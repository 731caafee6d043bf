import type { SimulationRefusal } from '../../../controller/ports/simulation.ts'

export function refused(refusal: SimulationRefusal): {
  readonly ok: false
  readonly refusal: SimulationRefusal
} {
  return { ok: false, refusal }
}
