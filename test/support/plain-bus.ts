/** One end of a simulated bus, for controller and servers alike; every message takes the same time. */
import type { Clock } from '../../controller/ports/clock.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { SimBus } from '../../simulator/network/sim-bus.ts'
import type { BusMode, Endpoint } from '../../simulator/network/sim-bus.ts'

export function plainBus(clock: Clock, mode: BusMode = 'reference', delayMs: DurationMs = 0): Endpoint {
  const passage = { isLost: false, copies: 1, delaysMs: [delayMs], hold: null }
  const links = { passage: () => passage, isCut: () => false }
  return new SimBus(delayMs === 0 ? { clock, mode } : { clock, mode, links }).endpoint(null)
}
