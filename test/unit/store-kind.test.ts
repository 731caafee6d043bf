/**
 * A live store accepts no simulated servers, and a trial store no NVIDIA GPUs, so demonstration and
 * production never mix.
 */
import { expect, it } from 'vitest'
import type { StoreKind } from '../../controller/model/store-kind.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import { listenToNodes, type InboundOptions } from '../../controller/wire/inbound.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { DeviceKind } from '../../protocol/units.ts'

const NODE_ID = '5f0c9a52-1d3e-4b7a-9c11-000000000001'

/** The answer to a hello of this device from a controller over a store of this kind. */
function answerTo(
  device: DeviceKind,
  storeKind: StoreKind | null,
): { readonly answers: unknown[]; readonly joined: number } {
  const handlers = new Map<
    string,
    (message: Envelope, subject: string, reply: (answer: Envelope) => void) => void
  >()
  const answers: unknown[] = []
  let joined = 0
  const bus = {
    subscribe: (pattern: string, handler: never) => (handlers.set(pattern, handler), () => {}),
  } as unknown as Bus
  const options = {
    bus,
    storeKind,
    engine: {
      cluster: { nodes: new Map(), contacts: new Map() },
      judge: () => 'known',
      hello: () => (joined += 1),
    },
    clock: { now: () => 0 },
    freshness: { heard: () => null },
    envelope: (body: unknown) => body,
    onRefused: () => {},
    onLate: () => {},
  } as unknown as InboundOptions
  listenToNodes(options)
  const hello = {
    body: { op: 'hello', node_id: NODE_ID, device },
    boot: { counter: 1, random: 'a' },
    seq: 1,
    sent_mono: 0,
  }
  const subject = `gpu.v1.node.${NODE_ID}.hello`
  for (const [pattern, handler] of handlers)
    if (pattern.endsWith('hello')) handler(hello as never, subject, (answer) => answers.push(answer))
  return { answers, joined }
}

it('A live store refuses simulated servers', () => {
  expect(answerTo('simulated', 'live')).toEqual({
    answers: [{ op: 'refused', reason: 'simulated_in_live' }],
    joined: 0,
  })
})

it('A trial store accepts simulated servers and refuses NVIDIA GPUs', () => {
  expect(answerTo('simulated', 'trial').joined).toBe(1)
  expect(answerTo('nvidia', 'trial')).toEqual({
    answers: [{ op: 'refused', reason: 'nvidia_in_trial' }],
    joined: 0,
  })
})

it('A live store accepts servers of real devices and of real processes', () => {
  expect([
    answerTo('nvidia', 'live').joined,
    answerTo('process', 'live').joined,
    answerTo('process', 'trial').joined,
  ]).toEqual([1, 1, 1])
})

it('A store without a kind accepts every server', () => {
  expect([answerTo('nvidia', null).joined, answerTo('simulated', null).joined]).toEqual([1, 1])
})
