/** Wraps the ports of a controller so that their inputs are recorded. Outputs pass unchanged. */
import type { Bus } from '../ports/bus.ts'
import type { Clock } from '../ports/clock.ts'
import { RANK_DECISION } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Store } from '../ports/store.ts'
import type { InputSink } from './input-sink.ts'

export interface RecordablePorts {
  readonly clock: Clock
  readonly random: Random
  readonly bus: Bus
  readonly store: Store
}

/** A timer is identified by its requested instant and rank; among equal ones the first runs first. */
export function recordedClock(clock: Clock, recorder: InputSink): Clock {
  return {
    now: () => recorder.now(),
    at(instant, fn, rank = RANK_DECISION) {
      const due = Math.max(instant, recorder.now())
      return clock.at(instant, () => recorder.take({ k: 'timer', due, rank }, fn), rank)
    },
    soon(fn, rank) {
      const due = recorder.now()
      clock.soon(() => recorder.take({ k: 'timer', due, rank }, fn), rank)
    },
  }
}

export function recordedRandom(random: Random, recorder: InputSink): Random {
  return {
    stream(name) {
      const next = random.stream(name)
      return () => {
        const value = next()
        recorder.drew(name, value)
        return value
      }
    },
  }
}

export function recordedBus(bus: Bus, recorder: InputSink): Bus {
  let requests = 0
  return {
    publish: (subject, message) => bus.publish(subject, message),
    request(subject, message, timeoutMs, done) {
      const n = (requests += 1)
      bus.request(subject, message, timeoutMs, (outcome) =>
        recorder.take({ k: 'outcome', n, outcome }, () => done(outcome)),
      )
    },
    subscribe: (pattern, handler) =>
      bus.subscribe(pattern, (message, subject, reply) =>
        recorder.take({ k: 'message', pattern, subject, message }, () => handler(message, subject, reply)),
      ),
    onConnection: (listener) =>
      bus.onConnection?.((isConnected) =>
        recorder.take({ k: 'broker', isConnected }, () => listener(isConnected)),
      ) ?? (() => {}),
    drain: () => bus.drain(),
  }
}

/** Decisions are recorded even if the store keeps none. The engine reports the store's answers itself. */
export function recordedStore(store: Store, recorder: InputSink): Store {
  return {
    ...(store.isForgetful === undefined ? {} : { isForgetful: store.isForgetful }),
    keepsDecisions: true,
    load: () => store.load(),
    commit(batch) {
      const committed = store.commit(store.keepsDecisions === true ? batch : { ...batch, decisions: [] })
      recorder.committed(batch, committed === undefined)
      return committed
    },
    reads: store.reads,
    close: () => store.close(),
  }
}
