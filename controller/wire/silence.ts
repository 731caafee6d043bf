/** The timer behind liveness: once a second the engine looks who has fallen silent, which leases have ended, and renews its epoch (R5, R9). */
import type { DurationMs } from '../../protocol/units.ts'
import type { Engine } from '../engine/engine.ts'
import type { Clock } from '../ports/clock.ts'
import { RANK_ARRIVAL } from '../ports/clock.ts'

const LOOK_EVERY_MS: DurationMs = 1_000
/** A look that comes later than this was held up, and with it every message: silence meanwhile is nobody's fault. */
const DEAF_FROM_MS: DurationMs = 5_000

/** @returns a function that stops watching. */
export function watchSilence(engine: Engine, clock: Clock): () => void {
  let cancel: () => void = () => {}
  const plan = (): void => {
    const due = clock.now() + LOOK_EVERY_MS
    const look = (): void => {
      const lateMs = clock.now() - due
      engine.look(lateMs >= DEAF_FROM_MS ? lateMs : 0)
      engine.renewEpoch()
      plan()
    }
    cancel = clock.at(due, look, RANK_ARRIVAL)
  }
  plan()
  return () => cancel()
}
