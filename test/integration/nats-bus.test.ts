/**
 * The bus over a real broker: its behaviour when the broker stops, starts, hangs, or refuses the connection.
 */
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { connect } from '@nats-io/transport-node'
import { afterEach, describe, expect, test } from 'vitest'
import type { RequestOutcome } from '../../controller/ports/bus.ts'
import { encode } from '../../protocol/codec.ts'
import { MAX_MESSAGE_BYTES } from '../../protocol/limits.ts'
import { aHeartbeat } from '../support/bus-contract.ts'
import { envelopeOf } from '../support/envelopes.ts'
import { freePort } from '../support/free-port.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import type { NatsServer } from '../support/nats-server.ts'
import { connectedBus, natsBus, settled, until } from '../support/nats-world.ts'
import type { WatchedBus } from '../support/nats-world.ts'

const TIMEOUT_MS = 10_000
const HEARTBEATS = 'gpu.v1.node.*.heartbeat'
const SUBJECT = 'gpu.v1.node.a.heartbeat'

const started: NatsServer[] = []
const broker = async (config?: string, port?: number): Promise<NatsServer> => {
  const server = await startNatsServer(config, port)
  started.push(server)
  return server
}
afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.kill()))
})

const message = envelopeOf(aHeartbeat('a'))
const echo = (bus: WatchedBus): (() => void) =>
  bus.subscribe(HEARTBEATS, (heard, _subject, reply) => reply(heard))

function ask(bus: WatchedBus, timeoutMs = TIMEOUT_MS, subject = SUBJECT): Promise<RequestOutcome> {
  return new Promise((resolve) => bus.request(subject, message, timeoutMs, resolve))
}

/** Sends 64 MB as fast as possible, and reports its start. */
const FLOOD = `
const { connect } = require(${JSON.stringify(fileURLToPath(import.meta.resolve('@nats-io/transport-node')))})
const { parentPort, workerData } = require('node:worker_threads')
connect({ servers: workerData.url }).then(async (connection) => {
  parentPort.postMessage('begins')
  for (let each = 0; each < 1000; each++) {
    connection.publish(workerData.subject, new Uint8Array(65_536))
    if (each % 100 === 0) await connection.flush()
  }
})`

/** Blocks this thread, like a handler that computes. */
function busyFor(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe.skipIf(whyNoNatsServer() !== null)('the bus over NATS', () => {
  test('waits for a broker that is missing at its start; until then requests fail at once', async () => {
    const port = await freePort()
    const bus = natsBus(`nats://127.0.0.1:${port}`)
    echo(bus)
    await until('it says that it cannot connect', () => bus.states.length > 0)
    expect(bus.states).toEqual([expect.stringMatching(/^disconnected cannot connect: connection refused/)])
    expect(await ask(bus)).toEqual({ answered: false, why: 'disconnected' })
    await broker('', port)
    await until('it is connected', () => bus.isConnected)
    expect(await ask(bus)).toMatchObject({ answered: true })
    expect(bus.states.slice(1)).toEqual([`connected 127.0.0.1:${port}`])
  })

  test('notifies its listeners when the connection is lost and when it is back, each once', async () => {
    const port = await freePort()
    const bus = natsBus(`nats://127.0.0.1:${port}`)
    const told: boolean[] = []
    await until('it says that it cannot connect', () => bus.states.length > 0)
    bus.onConnection?.((isConnected) => told.push(isConnected))
    await until('a late listener hears that it is away', () => told.length === 1)
    const server = await broker('', port)
    await until('it is back', () => told.length === 2)
    await server.kill()
    await until('it is away again', () => told.length === 3)
    await server.restart()
    await until('it is back again', () => told.length === 4)
    expect(told).toEqual([false, true, false, true])
  })

  test('keeps its subscriptions when the broker is killed; every request has one outcome', async () => {
    const server = await broker()
    const [controller, node] = [await connectedBus(server.url), await connectedBus(server.url)]
    echo(controller)
    await settled(controller)
    const outcomes = { answered: 0, not: 0 }
    let sent = 0
    let isOver = false
    const again = (): void => {
      sent += 1
      node.request(SUBJECT, message, TIMEOUT_MS, ({ answered }) => {
        outcomes[answered ? 'answered' : 'not'] += 1
        if (!isOver) again()
      })
    }
    for (let each = 0; each < 50; each++) again()
    for (let kill = 1; kill <= 3; kill++) {
      const before = outcomes.answered
      await until('traffic flows', () => outcomes.answered > before + 1000)
      await server.kill()
      await until('both know', () => !controller.isConnected && !node.isConnected)
      await server.restart()
      await until('both are back', () => controller.isConnected && node.isConnected)
    }
    isOver = true
    await until('nothing is under way', () => outcomes.answered + outcomes.not === sent)
    const { requests, answers, timeouts, noResponders, disconnected, unsendable } = node.counts
    expect(requests).toBe(sent)
    expect(answers).toBe(outcomes.answered)
    expect(timeouts + noResponders + disconnected + unsendable).toBe(outcomes.not)
    expect(node.counts.connections).toBe(4)
    expect(node.states.filter((state) => state.startsWith('disconnected connection lost'))).toHaveLength(3)
  })

  test('survives a broker that hangs for a while', async () => {
    const server = await broker()
    const bus = await connectedBus(server.url)
    echo(bus)
    await server.freeze()
    expect(await ask(bus, 100)).toEqual({ answered: false, why: 'timeout' })
    server.thaw()
    expect(await ask(bus)).toMatchObject({ answered: true })
    expect(bus.counts.connections).toBe(1)
  })

  test('disconnects from a broker that hangs, limits unsent data, and reconnects', async () => {
    const server = await broker()
    const bus = await connectedBus(server.url, { limits: { pingEveryMs: 100, maxUnsentBytes: 1024 * 1024 } })
    echo(bus)
    await server.freeze()
    const large = envelopeOf({ op: 'refused', reason: 'x'.repeat(200) })
    const outcomes: RequestOutcome[] = []
    let sent = 0
    const flood = setInterval(() => {
      for (let each = 0; each < 500; each++)
        bus.request(SUBJECT, large, TIMEOUT_MS, (outcome) => outcomes.push(outcome))
      sent += 500
    }, 1)
    await until('it is disconnected', () => !bus.isConnected)
    clearInterval(flood)
    await until('every request has its outcome', () => outcomes.length === sent)
    server.thaw()
    await until('it is back', () => bus.isConnected)
    expect(await ask(bus)).toMatchObject({ answered: true })
  })

  test('reports messages that cannot be sent, and continues', async () => {
    const server = await broker('max_payload: 20000')
    const bus = await connectedBus(server.url, { limits: { maxOutstandingRequests: 10 } })
    echo(bus)
    const tooLarge = { ...message, body: { ...aHeartbeat('a'), node_id: 'x'.repeat(MAX_MESSAGE_BYTES) } }
    const aboveBroker = { ...message, body: { ...aHeartbeat('a'), node_id: 'x'.repeat(20_000) } }
    for (const each of [tooLarge, aboveBroker]) {
      const outcome = await new Promise((resolve) => bus.request(SUBJECT, each, TIMEOUT_MS, resolve))
      expect(outcome).toEqual({ answered: false, why: 'unsendable' })
    }
    expect(await ask(bus, TIMEOUT_MS, 'no subject')).toEqual({ answered: false, why: 'unsendable' })
    bus.publish(SUBJECT, tooLarge)
    expect(bus.bad.map(({ why }) => why)).toEqual([
      expect.stringContaining("message 'heartbeat' has"),
      expect.stringContaining('max_payload'),
      expect.stringContaining('no subject'),
      expect.stringContaining("message 'heartbeat' has"),
    ])
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => ask(bus)))
    expect(outcomes.filter(({ answered }) => answered)).toHaveLength(10)
    expect(bus.counts).toMatchObject({ unsendable: 5, dropped: 1, answers: 10 })
  })

  test('counts and reports invalid messages, and does not answer them', async () => {
    const server = await broker()
    const bus = await connectedBus(server.url)
    const heard: string[] = []
    bus.subscribe(HEARTBEATS, (each) => heard.push(each.id))
    await settled(bus)
    const raw = await connect({ servers: server.url })
    const good = encode(message)
    const other = new TextEncoder().encode(JSON.stringify({ ...message, v: 2 }))
    const payloads = [
      new Uint8Array(),
      good.subarray(0, 50),
      new Uint8Array(MAX_MESSAGE_BYTES + 1),
      other,
      new TextEncoder().encode('{"v":1}'),
      good,
    ]
    let answers = 0
    raw.subscribe('_INBOX.raw', { callback: () => void (answers += 1) })
    for (const payload of payloads) raw.publish(SUBJECT, payload, { reply: '_INBOX.raw' })
    raw.publish(SUBJECT, good, { reply: 'gpu.v1.node.other.command' })
    await until('all have come in', () => bus.bad.length === 6)
    await raw.close()
    expect(heard).toEqual([message.id])
    expect(answers).toBe(0)
    expect(bus.counts).toMatchObject({
      handled: 1,
      malformed: { too_large: 1, not_json: 2, wrong_version: 1, bad_field: 2 },
    })
    expect(bus.bad.map(({ subject, why }) => `${subject} ${why}`)).toEqual([
      `${SUBJECT} message: is not JSON in UTF-8`,
      `${SUBJECT} message: is not JSON in UTF-8`,
      `${SUBJECT} message: ${MAX_MESSAGE_BYTES + 1} bytes, the limit is ${MAX_MESSAGE_BYTES}`,
      `${SUBJECT} v: must be 1, not 2`,
      expect.stringContaining(`${SUBJECT} id: must be`),
      `${SUBJECT} reply: must begin with _INBOX`,
    ])
  })

  test('keeps waiting for the right answer after a malformed one', async () => {
    const server = await broker()
    const bus = await connectedBus(server.url)
    const raw = await connect({ servers: server.url })
    raw.subscribe(HEARTBEATS, {
      callback: (_error, asked) => {
        asked.respond('{"v":1}')
        asked.respond(encode(message))
      },
    })
    await raw.flush()
    expect(await ask(bus)).toEqual({ answered: true, answer: message })
    expect(bus.counts.malformed.bad_field).toBe(1)
    await raw.close()
  })

  test('drops messages when too many wait, names the slow subscription, and recovers', async () => {
    const server = await broker()
    const bus = await connectedBus(server.url, { limits: { maxWaitingMessages: 100, turnMs: 1 } })
    const sender = await connectedBus(server.url)
    bus.subscribe(HEARTBEATS, (heard, _subject, reply) => {
      busyFor(0.2)
      reply(heard)
    })
    await settled(bus)
    for (let each = 0; each < 5000; each++) sender.publish(SUBJECT, message)
    await until('all have come in', () => bus.counts.handled + bus.counts.overrun === 5000)
    expect(bus.counts.overrun).toBeGreaterThan(0)
    expect(bus.slow).toContain(HEARTBEATS)
    expect(bus.slow.length).toBeLessThan(100)
    expect(await ask(sender)).toMatchObject({ answered: true })
  })

  test('that reads too slowly is disconnected by the broker, and reconnects', async () => {
    const server = await broker('max_payload: 65536\nmax_pending: 65536\nwrite_deadline: "100ms"')
    const bus = await connectedBus(server.url)
    echo(bus)
    await settled(bus)
    const flood = new Worker(FLOOD, { eval: true, workerData: { url: server.url, subject: SUBJECT } })
    await once(flood, 'message')
    busyFor(1_000)
    await until('it was put out', () => bus.states.some((state) => state.startsWith('disconnected')))
    await flood.terminate()
    await until('the broker has said why', () => server.log().includes('Slow Consumer'))
    await until('it is back', () => bus.isConnected)
    expect(await ask(bus)).toMatchObject({ answered: true })
  })

  test('ends every request when it is closed', async () => {
    const server = await broker()
    const bus = await connectedBus(server.url)
    bus.subscribe(HEARTBEATS, () => {})
    const outcome = ask(bus)
    await bus.close()
    expect(await outcome).toEqual({ answered: false, why: 'disconnected' })
    expect(await ask(bus)).toEqual({ answered: false, why: 'disconnected' })
    await bus.close()
    await bus.drain()
    expect(bus.states.at(-1)).toBe('closed')
  })

  test('that is drained still receives the answers to its requests', async () => {
    const server = await broker()
    const [controller, node] = [await connectedBus(server.url), await connectedBus(server.url)]
    const waiting: (() => void)[] = []
    controller.subscribe(HEARTBEATS, (heard, _subject, reply) => waiting.push(() => reply(heard)))
    await settled(controller)
    const outcome = ask(node)
    await until('it is heard', () => waiting.length > 0)
    const drained = node.drain()
    waiting.forEach((answer) => answer())
    expect(await outcome).toMatchObject({ answered: true })
    await drained
  })
})
