/**
 * The messages between a controller and one GPU server in the same process: no broker. Encoded like those of
 * a broker, and delivered after the call that sent them.
 */
import type { Bus } from '../../controller/ports/bus.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { deferredBus } from '../../simulator/network/deferred-bus.ts'
import { UNHINDERED } from '../../simulator/network/passage.ts'
import { SimBus } from '../../simulator/network/sim-bus.ts'

export function connectInProcess(clock: Clock): { readonly controller: Bus; readonly server: Bus } {
  // With links, a request that gets no answer ends with a timeout.
  const links = { passage: () => UNHINDERED, isCut: () => false }
  const bus = new SimBus({ clock, mode: 'wire', links })
  return {
    controller: deferredBus(bus.endpoint(null), clock),
    server: deferredBus(bus.endpoint('server'), clock),
  }
}
