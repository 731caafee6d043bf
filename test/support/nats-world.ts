/** Buses over a real broker, and waiting for conditions on them. */
import { afterEachTest } from './endings.ts'
import { connectNatsBus } from '../../controller/adapters/nats-bus.ts'
import type { NatsBus, NatsBusOptions } from '../../controller/adapters/nats-bus.ts'
import { aHeartbeat } from './bus-contract.ts'
import { envelopeOf } from './envelopes.ts'

const WITHIN_MS = 100_000

/** Buses of one test, which are closed when the test ends. */
const open = new Set<NatsBus>()
afterEachTest(async () => {
  await Promise.all([...open].map((bus) => bus.close()))
  open.clear()
})

export interface WatchedBus extends NatsBus {
  /** `connected …`, `disconnected …`, `closed`, in order. */
  readonly states: readonly string[]
  readonly bad: readonly { readonly subject: string; readonly why: string }[]
  readonly slow: readonly string[]
  readonly denied: readonly string[]
}

export function natsBus(url: string, options: Partial<NatsBusOptions> = {}): WatchedBus {
  const states: string[] = []
  const bad: { subject: string; why: string }[] = []
  const slow: string[] = []
  const denied: string[] = []
  const bus = connectNatsBus({
    urls: [url],
    name: 'test',
    auth: { kind: 'none' },
    tls: null,
    onState: (state, detail) => states.push(`${state} ${detail}`.trim()),
    onBadMessage: (subject, why) => bad.push({ subject, why }),
    onSlowConsumer: (pattern) => slow.push(pattern),
    onDenied: (operation, subject) => denied.push(`${operation} ${subject}`),
    ...options,
  })
  open.add(bus)
  return Object.assign(bus, { states, bad, slow, denied })
}

export async function connectedBus(url: string, options: Partial<NatsBusOptions> = {}): Promise<WatchedBus> {
  const bus = natsBus(url, options)
  await until('the bus is connected', () => bus.isConnected)
  return bus
}

/** Resolves once the broker has received everything that this bus has sent, including subscriptions. */
export async function settled(bus: NatsBus): Promise<void> {
  let isOver = false
  bus.request('no.subscriber.here', envelopeOf(aHeartbeat('a')), WITHIN_MS, () => (isOver = true))
  await until('the broker has answered', () => isOver)
}

/** Resolves when the condition holds; rejects with its name if it does not in time. */
export async function until(what: string, holds: () => boolean, withinMs = WITHIN_MS): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
