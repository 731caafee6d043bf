/**
 * Commands are sent when their decisions are durable; a command that was cancelled meanwhile is not sent
 * (R5).
 */
import { expect, it } from 'vitest'
import { Freshness } from '../../controller/wire/freshness.ts'
import { Outbound } from '../../controller/wire/outbound.ts'
import type { StopEffect } from '../../controller/model/effect.ts'
import type { ControllerBody, Envelope } from '../../protocol/envelope.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

const STOP: StopEffect = { kind: 'stop', nodeId: 'n', taskId: 't', attempt: 1, reason: 'a test', graceMs: 0 }

it.each([
  [true, 1],
  [false, 0],
])('A command that is still wanted (%s) at that time is sent %i times', (isWanted, times) => {
  const clock = new VirtualClock(0)
  const freshness = new Freshness(false)
  freshness.heard('n', { counter: 1, random: 'r' }, 0, 0)
  const sent: Envelope[] = []
  const outbound = new Outbound({
    clock,
    freshness,
    bus: {
      publish: () => {},
      request: (_subject, message) => sent.push(message),
      subscribe: () => () => {},
      drain: () => Promise.resolve(),
    },
    random: () => 0.5,
    runLeaseMs: () => 15_000,
    reserveMib: () => 2_048,
    valuesOf: () => null,
    envelope: (body: ControllerBody) => ({
      v: 1,
      id: 'c1',
      sent_mono: 0,
      boot: { counter: 1, random: 'c' },
      seq: 1,
      epoch: 1,
      body,
    }),
    isWanted: () => isWanted,
    mayLeave: () => true,
    onResult: () => {},
  })
  outbound.send(STOP)
  expect([sent.length, outbound.inFlight('n')]).toEqual([times, times])
})
