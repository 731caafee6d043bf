/**
 * A bus that delivers messages after the call, within the same instant: no sender is answered during its
 * call.
 */
import type { Bus } from '../../controller/ports/bus.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'

export function deferredBus(bus: Bus, clock: Clock): Bus {
  const later = (act: () => void): void => clock.soon(act, RANK_MESSAGE)
  return {
    publish: (subject, message) => later(() => bus.publish(subject, message)),
    request: (subject, message, timeoutMs, done) =>
      later(() => bus.request(subject, message, timeoutMs, done)),
    subscribe: (pattern, handler) =>
      bus.subscribe(pattern, (message, subject, reply) =>
        handler(message, subject, (answer) => later(() => reply(answer))),
      ),
    onConnection: (listener) =>
      bus.onConnection?.((isConnected) => later(() => listener(isConnected))) ?? (() => {}),
    drain: () => bus.drain(),
  }
}
