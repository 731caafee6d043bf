/** Fifty thousand invalid messages cause no crash and no change, and each is counted by its reason. */
import { connect } from '@nats-io/transport-node'
import type { NatsConnection } from '@nats-io/transport-node'
import { expect, test } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import type { BusCounts } from '../../controller/adapters/nats-bus.ts'
import { createApi } from '../../controller/api/server.ts'
import { createController } from '../../controller/controller.ts'
import type { Controller } from '../../controller/controller.ts'
import type { Store } from '../../controller/ports/store.ts'
import { encode } from '../../protocol/codec.ts'
import type { Body, Envelope } from '../../protocol/envelope.ts'
import { MAX_MESSAGE_BYTES } from '../../protocol/limits.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { aHeartbeat } from '../support/bus-contract.ts'
import { aSubmission } from '../support/client-world.ts'
import { envelopeOf } from '../support/envelopes.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import { connectedBus, settled, until } from '../support/nats-world.ts'
import { eventQuery } from '../support/store-builders.ts'

const MESSAGES = 50_000
/** Maximum number of messages in flight. */
const AT_ONCE = 2_000
const SEED = 'hostile'
const NODE = 'n1'
const on = (verb: string, node = NODE): string => `gpu.v1.node.${node}.${verb}`

type Reason =
  keyof BusCounts['malformed'] | keyof Controller['messages']['refused'] | 'late' | 'repeated_events'
interface Hostile {
  readonly reason: Reason
  readonly subject: string
  readonly payload: Uint8Array
  readonly reply?: string
}

const hello = (nodeId: string): Body => {
  const { gpus, tasks, finished_unacked } = aHeartbeat(nodeId)
  const more = {
    name: nodeId,
    address: '',
    host_swap_mib: 100_000,
    signals_wanted: true,
    device: 'process',
    allow_exec: true,
  } as const
  return { op: 'hello', node_id: nodeId, gpus, tasks, finished_unacked, ...more }
}

test.skipIf(whyNoNatsServer() !== null)(
  `${MESSAGES} hostile messages do not crash the controller, change nothing, and are counted exactly`,
  async () => {
    const server = await startNatsServer()
    const clock = new VirtualClock(1_000_000)
    const bus = await connectedBus(server.url)
    const store = createMemoryStore()
    const audit: string[] = []
    const controller = createController(
      { clock, random: createSeededRandom(SEED), bus, store },
      { onRefused: (_sender, reason) => audit.push(reason) },
    )
    // The clock is stopped, so that only messages could change anything; due timers have run.
    const pump = setInterval(() => {
      while (clock.step(clock.now()));
    }, 1)
    await controller.start()
    await settled(bus)
    const raw = await connect({ servers: server.url })
    try {
      const genuine = await liveAWhile(raw, controller)
      const before = await stateOf(controller, store)
      const { handled } = bus.counts
      const expected = await flood(raw, genuine, () => incoming(bus.counts))
      const { malformed, overrun } = bus.counts
      const { refused, late } = controller.messages
      expect(overrun).toBe(0)
      expect({ ...malformed, ...refused, late }).toEqual({
        contradictory_boot: 0,
        foreign_files: 0,
        simulated_in_live: 0,
        too_many_requests: 0,
        nvidia_in_trial: 0,
        ...without(expected, 'repeated_events'),
      })
      expect(audit.length).toBe(refused.wrong_sender + refused.unknown_node + refused.wrong_subject)
      expect(bus.counts.handled - handled).toBe(audit.length + late + (expected.repeated_events ?? 0))
      expect(sum(Object.values(expected))).toBe(MESSAGES)
      expect(await stateOf(controller, store)).toEqual(before)
      expect(bus.counts.connections).toBe(1)
      const answer = await raw.request(on('heartbeat'), encode({ ...genuine.heartbeat, seq: 1_000_000 }), {
        timeout: 60_000,
      })
      expect(answer.json<Envelope>().body.op).toBe('lease')
    } finally {
      clearInterval(pump)
      await raw.close()
      await controller.stop()
      await server.kill()
    }
  },
  60_000,
)

interface Genuine {
  readonly hello: Envelope
  readonly heartbeat: Envelope
  readonly events: Envelope
}

/** One registered server, one running task, one waiting task. */
async function liveAWhile(raw: NatsConnection, controller: Controller): Promise<Genuine> {
  const ask = async (subject: string, message: Envelope): Promise<Body> =>
    (await raw.request(subject, encode(message), { timeout: 60_000 })).json<Envelope>().body
  raw.subscribe(on('command'), {
    callback: (_error, message) => {
      const { task_id, attempt } = message.json<{ body: { task_id: string; attempt: number } }>().body
      message.respond(
        encode(
          envelopeOf({
            op: 'result',
            task_id,
            attempt,
            outcome: 'accepted',
            reason: null,
            residency: 'none',
            generation: 0,
          }),
        ),
      )
    },
  })
  const genuine = { hello: envelopeOf(hello(NODE)), heartbeat: envelopeOf(aHeartbeat(NODE)) }
  expect(await ask(on('hello'), genuine.hello)).toMatchObject({ op: 'welcome' })
  const command = ['true']
  const placed = await ask('gpu.v1.client.lab.submit', envelopeOf(aSubmission({ command })))
  await ask('gpu.v1.client.lab.submit', envelopeOf(aSubmission({ command, vram_mib: 24_000 })))
  const task_id = placed.op === 'task' ? placed.task_id : ''
  await until('it is assigned', () => controller.views.openTask(task_id)?.state === 'assigned')
  const events = envelopeOf({
    op: 'events',
    node_id: NODE,
    entries: [{ kind: 'started', n: 1, task_id, attempt: 1, wants_gpu: true }],
  })
  expect(await ask(on('event'), events)).toEqual({ op: 'events_ack', up_to: 1 })
  expect(controller.views.counts()).toMatchObject({ running: 1, pending: 1 })
  const residency = 'resident'
  const task = {
    task_id,
    attempt: 1,
    residency,
    generation: 1,
    gpus: [0],
    vram_mib: 8_192,
    wants_gpu: true,
    idle_ms: 0,
  } as const
  const heartbeat = envelopeOf({ ...aHeartbeat(NODE), tasks: [task] })
  expect(await ask(on('heartbeat'), heartbeat)).toMatchObject({ op: 'lease', stop: [] })
  return { hello: genuine.hello, heartbeat, events }
}

/** Sends them in awaited portions, so that none is dropped as excess. @returns the number by reason */
async function flood(
  raw: NatsConnection,
  genuine: Genuine,
  arrived: () => number,
): Promise<Partial<Record<Reason, number>>> {
  const random = createSeededRandom(SEED).stream('messages')
  const kinds = kindsOf(genuine, random)
  const expected: Partial<Record<Reason, number>> = {}
  const from = arrived()
  for (let sent = 0; sent < MESSAGES;) {
    for (const end = Math.min(MESSAGES, sent + AT_ONCE); sent < end; sent++) {
      // Large ones are rare, or the test would measure the memory of the machine.
      const kind = sent % 500 === 0 ? kinds.length - 1 : Math.floor(random() * (kinds.length - 1))
      const { reason, subject, payload, reply } = (kinds[kind] as () => Hostile)()
      expected[reason] = (expected[reason] ?? 0) + 1
      raw.publish(subject, payload, reply === undefined ? {} : { reply })
    }
    await until('they have come in', () => arrived() - from === sent)
  }
  return expected
}

/** The last one is large. */
function kindsOf(
  { hello: greeting, heartbeat, events }: Genuine,
  random: () => number,
): readonly (() => Hostile)[] {
  const among = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const text = new TextEncoder()
  const said = [
    [on('hello'), greeting],
    [on('heartbeat'), heartbeat],
    [on('event'), events],
    ['gpu.v1.client.lab.submit', envelopeOf(aSubmission())],
  ] as const
  const spoilt = (path: string, value: unknown): Uint8Array => {
    const copy = JSON.parse(JSON.stringify(heartbeat)) as Record<string, Record<string, unknown>>
    if (path.startsWith('body.')) (copy['body'] as Record<string, unknown>)[path.slice(5)] = value
    else (copy as Record<string, unknown>)[path] = value
    return text.encode(JSON.stringify(copy))
  }
  const fields = [
    'id',
    'sent_mono',
    'boot',
    'seq',
    'epoch',
    'body',
    'body.op',
    'body.node_id',
    'body.gpus',
    'body.tasks',
    'body.finished_unacked',
  ]
  const odd: readonly unknown[] = [null, true, -1, 0.5, 1e300, '', 'x'.repeat(300), {}, [null], { length: 3 }]
  return [
    () => ({
      reason: 'not_json',
      subject: among(said)[0],
      payload: Uint8Array.from(
        { length: 1 + Math.floor(random() * 200) },
        () => 128 + Math.floor(random() * 64),
      ),
    }),
    () => {
      const [subject, message] = among(said)
      const whole = encode(message)
      return { reason: 'not_json', subject, payload: whole.subarray(0, Math.floor(random() * whole.length)) }
    },
    () => ({
      reason: 'wrong_version',
      subject: on('heartbeat'),
      payload: spoilt('v', among([0, 2, '1', null, [1]])),
    }),
    () => ({ reason: 'bad_field', subject: on('heartbeat'), payload: spoilt(among(fields), among(odd)) }),
    () => ({
      reason: 'bad_field',
      subject: on('heartbeat'),
      payload: encode(heartbeat),
      reply: among([on('command'), '$SYS.REQ', 'x']),
    }),
    () => ({
      reason: 'wrong_sender',
      subject: on(among(['hello', 'heartbeat', 'event']), among(['n2', 'lab'])),
      payload: encode(among(said)[1]),
    }),
    () => ({
      reason: 'unknown_node',
      subject: on('heartbeat', 'n9'),
      payload: encode(envelopeOf(aHeartbeat('n9'))),
    }),
    () => ({
      reason: 'unknown_node',
      subject: on('event'),
      payload: encode({
        ...events,
        boot: among([
          { counter: 0, random: 'test' },
          { counter: 1, random: 'else' },
          { counter: 9, random: 'test' },
        ]),
      }),
    }),
    () => ({
      reason: 'wrong_subject',
      subject: `gpu.v1.client.lab.${among(['get', 'cancel', 'keepalive'])}`,
      payload: encode(among(said)[1]),
    }),
    () => ({ reason: 'late', subject: on('hello'), payload: encode(greeting) }),
    () => ({
      reason: 'late',
      subject: on('heartbeat'),
      payload: encode({ ...heartbeat, seq: Math.floor(random() * (heartbeat.seq + 1)) }),
    }),
    () => ({ reason: 'repeated_events', subject: on('event'), payload: encode(events) }),
    () => ({
      reason: 'too_large',
      subject: among(said)[0],
      payload: new Uint8Array(MAX_MESSAGE_BYTES + 1 + Math.floor(random() * 1000)).fill(32),
    }),
  ]
}

/** Visible, durable and logged state, as text. */
async function stateOf(controller: Controller, store: Store): Promise<string> {
  const app = createApi({
    commands: controller.commands,
    views: controller.views,
    version: 'test',
    fleet: 'live',
    readiness: () => [],
  })
  const seen = await Promise.all(
    ['nodes', 'tasks', 'groups', 'config', 'summary'].map(
      async (path) => (await app.inject(`/api/v1/${path}`)).body,
    ),
  )
  await app.close()
  expect(seen.join()).toContain(`"node_id":"${NODE}"`)
  return JSON.stringify(
    [seen, await store.load(), await store.reads.events(eventQuery({})), controller.views.lastEventSeq()],
    null,
    1,
  )
}

const incoming = ({ handled, malformed }: BusCounts): number => handled + sum(Object.values(malformed))
const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

function without<T extends object>(record: T, name: keyof T): Partial<T> {
  const { [name]: _, ...others } = record
  return others as Partial<T>
}
