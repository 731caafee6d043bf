/** The end of the bus of a process that may be paused: messages and answers wait until it continues. */
import type { Bus } from '../../controller/ports/bus.ts'
import type { Pause } from '../kernel/pause.ts'

export function pausableBus(bus: Bus, pause: Pause): Bus {
  return {
    publish: (subject, message) => bus.publish(subject, message),
    request: (subject, message, timeoutMs, done) =>
      bus.request(subject, message, timeoutMs, (outcome) => pause.run(() => done(outcome))),
    subscribe: (pattern, handler) =>
      bus.subscribe(pattern, (message, subject, reply) => pause.run(() => handler(message, subject, reply))),
    onConnection: (listener) =>
      bus.onConnection?.((isConnected) => pause.run(() => listener(isConnected))) ?? (() => {}),
    drain: () => bus.drain(),
  }
}
