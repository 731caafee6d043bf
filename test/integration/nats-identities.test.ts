/**
 * The broker configuration in this repository: the broker allows each identity its own subjects and refuses
 * all others.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect as connectRaw, nkeyAuthenticator } from '@nats-io/transport-node'
import type { NatsConnection } from '@nats-io/transport-node'
import { beforeAll, describe, expect, test } from 'vitest'
import { natsSettings } from '../../services/settings/nats-settings.ts'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../controller/adapters/system-random.ts'
import { createController } from '../../controller/controller.ts'
import type { RequestOutcome } from '../../controller/ports/bus.ts'
import { encode } from '../../protocol/codec.ts'
import { clientInbox } from '../../protocol/inbox.ts'
import type { Body } from '../../protocol/envelope.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { clientSubject, nodeSubject } from '../../protocol/subjects.ts'
import { aHeartbeat } from '../support/bus-contract.ts'
import { aSubmission } from '../support/client-world.ts'
import { envelopeOf } from '../support/envelopes.ts'
import { headroom } from '../support/headroom-command.ts'
import type { Ended } from '../support/headroom-command.ts'
import { freePort } from '../support/free-port.ts'
import { newFolder, startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import type { NatsServer } from '../support/nats-server.ts'
import { natsBus, settled, until } from '../support/nats-world.ts'
import type { WatchedBus } from '../support/nats-world.ts'

const A = nodeIdFromName('a')
const B = nodeIdFromName('b')
const OUTSIDE = nodeIdFromName('outside')

const aHello = (nodeId: string): Body => {
  const { gpus, tasks, finished_unacked } = aHeartbeat(nodeId)
  const rest = {
    name: 'n',
    address: '',
    host_swap_mib: 0,
    signals_wanted: true,
    device: 'process',
    allow_exec: false,
  } as const
  return { op: 'hello', node_id: nodeId, gpus, tasks, finished_unacked, ...rest }
}

describe.skipIf(whyNoNatsServer() !== null)('the included broker configuration', () => {
  const folder = newFolder()
  const out = join(folder, 'nats.conf')
  let server: NatsServer
  let url: string

  const config = (...args: string[]): Promise<Ended> => headroom(['nats', 'config', ...args])
  const whole = (): Promise<Ended> =>
    config(
      '--nodes',
      'a,b',
      '--clients',
      'lab,other',
      '--fleets',
      'demo',
      '-o',
      out,
      '--listen',
      url.slice('nats://'.length),
    )

  beforeAll(async () => {
    const port = await freePort()
    url = `nats://127.0.0.1:${port}`
    expect(await whole()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`NODE_ID=${A}`) as string,
    })
    server = await startNatsServer(readFileSync(out, 'utf8'), port)
  })

  const connect = async (name: string): Promise<WatchedBus> => {
    const [, clientId] = /^client-(.*)$/.exec(name) ?? []
    const inbox = clientId === undefined ? {} : { CONTROLLER_NATS_INBOX_PREFIX: clientInbox(clientId) }
    const env = {
      CONTROLLER_NATS_URL: url,
      CONTROLLER_NATS_NKEY_FILE: join(folder, 'keys', `${name}.nk`),
      ...inbox,
    }
    const settings = natsSettings(env)
    if (settings === null) throw new Error('no settings')
    const bus = natsBus('', settings)
    await until(`${name} is connected`, () => bus.isConnected)
    return bus
  }
  /** May choose any reply subject. */
  const rawClient = (clientId: string): Promise<NatsConnection> => {
    const seed = readFileSync(join(folder, 'keys', `client-${clientId}.nk`), 'utf8').trim()
    return connectRaw({ servers: url, authenticator: nkeyAuthenticator(new TextEncoder().encode(seed)) })
  }
  const ask = (bus: WatchedBus, subject: string, body: Body = aHello(A)): Promise<RequestOutcome> =>
    new Promise((resolve) => bus.request(subject, envelopeOf(body), 10_000, resolve))

  test('lets controller, server, client and simulated fleet do their work', async () => {
    const [controller, a, lab, fleet] = [
      await connect('controller'),
      await connect('node-a'),
      await connect('client-lab'),
      await connect('fleet-demo'),
    ]
    const parts: readonly (readonly [WatchedBus, string, WatchedBus, string])[] = [
      ...(['hello', 'heartbeat', 'event', 'telemetry'] as const).map(
        (verb) => [controller, nodeSubject('*', verb), a, nodeSubject(A, verb)] as const,
      ),
      [a, nodeSubject(A, 'command'), controller, nodeSubject(A, 'command')],
      ...(['submit', 'cancel', 'get', 'keepalive'] as const).map(
        (verb) => [controller, clientSubject('*', verb), lab, clientSubject('lab', verb)] as const,
      ),
    ]
    for (const [hears, pattern] of parts)
      hears.subscribe(pattern, (message, _subject, reply) => reply(message))
    fleet.subscribe(nodeSubject(OUTSIDE, 'command'), (message, _subject, reply) => reply(message))
    for (const bus of [controller, a, fleet]) await settled(bus)
    for (const [, , asks, subject] of parts)
      expect(await ask(asks, subject), subject).toMatchObject({ answered: true })
    expect(await ask(fleet, nodeSubject(OUTSIDE, 'hello')), 'a fleet').toMatchObject({ answered: true })
    expect(await ask(controller, nodeSubject(OUTSIDE, 'command')), 'a fleet').toMatchObject({
      answered: true,
    })
    // `settled` uses a forbidden subject: that is the only refusal.
    for (const bus of [controller, a, lab, fleet])
      expect(bus.denied.filter((what) => what !== 'publish no.subscriber.here')).toEqual([])
  })

  test.each([
    ['node-a', 'sends a hello as another server', nodeSubject(B, 'hello')],
    ['node-a', 'sends a heartbeat as another server', nodeSubject(B, 'heartbeat')],
    ['node-a', 'reports events of another server', nodeSubject(B, 'event')],
    ['node-a', 'commands another server', nodeSubject(B, 'command')],
    ['node-a', 'submits as a client', clientSubject('lab', 'submit')],
    ['node-a', 'publishes as the controller', 'gpu.v1.controller.leader'],
    ['client-lab', 'submits as another client', clientSubject('other', 'submit')],
    ['client-lab', 'sends a hello as a server', nodeSubject(A, 'hello')],
    ['client-lab', 'commands a server', nodeSubject(A, 'command')],
    ['fleet-demo', 'commands a server', nodeSubject(A, 'command')],
    ['controller', 'sends a hello as a server', nodeSubject(A, 'hello')],
  ])('does not allow: %s %s', async (name, _what, subject) => {
    const [liar, controller, victim] = [
      await connect(name),
      await connect('controller'),
      await connect('node-b'),
    ]
    const heard: string[] = []
    controller.subscribe(nodeSubject('*', 'hello'), (_message, each) => heard.push(each))
    controller.subscribe(nodeSubject('*', 'event'), (_message, each) => heard.push(each))
    controller.subscribe(clientSubject('*', 'submit'), (_message, each) => heard.push(each))
    victim.subscribe(nodeSubject(B, 'command'), (_message, each) => heard.push(each))
    await settled(controller)
    await settled(victim)
    expect(await ask(liar, subject)).toEqual({ answered: false, why: 'no_responder' })
    expect(liar.denied).toContain(`publish ${subject}`)
    await until('the broker has said so', () =>
      new RegExp(`Publish Violation.*"${subject}"`).test(server.log()),
    )
    await settled(controller)
    await settled(victim)
    expect(heard).toEqual([])
  })

  test.each([
    ['node-a', 'commands of another server', nodeSubject(B, 'command')],
    ['node-a', 'commands of all servers', nodeSubject('*', 'command')],
    ['node-a', 'messages of other servers', nodeSubject('*', 'event')],
    ['node-a', 'submissions of clients', clientSubject('*', 'submit')],
    ['node-a', 'everything', '>'],
    ['client-lab', 'commands of a server', nodeSubject(A, 'command')],
    ['client-lab', 'submissions of other clients', clientSubject('*', 'submit')],
    ['controller', 'everything', '>'],
  ])('does not allow %s to listen to %s', async (name, _what, pattern) => {
    const spy = await connect(name)
    spy.subscribe(pattern, () => {})
    await until('it is told', () => spy.denied.length > 0)
    expect(spy.denied).toEqual([`subscription ${pattern}`])
    await until('the broker has said so', () => server.log().includes('Subscription Violation'))
  })

  test.each(['node-a', 'client-lab'])(
    'does not allow %s to read or forge answers to other parties',
    async (name) => {
      const spy = await connect(name)
      const victim = natsSettings({
        CONTROLLER_NATS_URL: url,
        CONTROLLER_NATS_NKEY_FILE: join(folder, 'keys/node-b.nk'),
      })
      spy.subscribe(`${victim?.inboxPrefix}.>`, () => {})
      spy.subscribe('_INBOX.>', () => {})
      await until('it is told of both', () => spy.denied.length === 2)
      expect(await ask(spy, `${victim?.inboxPrefix}.guess`)).toEqual({ answered: false, why: 'no_responder' })
      expect(spy.denied).toHaveLength(3)
    },
  )

  test('refuses a connection without a key', async () => {
    const bus = natsBus(url)
    await until('it is refused', () => bus.states.length > 0)
    expect(bus.states[0]).toMatch(/Authorization Violation/i)
  })

  test('leaves it to the controller to refuse and audit a payload that names another server', async () => {
    const audit: string[] = []
    const clock = createSystemClock()
    const bus = await connect('controller')
    const controller = createController(
      { clock, random: createSystemRandom(), bus, store: createMemoryStore() },
      { onRefused: (nodeId, reason) => audit.push(`${nodeId} ${reason}`) },
    )
    await controller.start()
    await settled(bus)
    const a = await connect('node-a')
    const refused = { answered: true, answer: { body: { op: 'refused', reason: 'wrong_sender' } } }
    expect(await ask(a, nodeSubject(A, 'hello'), aHello(B))).toMatchObject(refused)
    expect(await ask(a, nodeSubject(A, 'heartbeat'), aHeartbeat(B))).toMatchObject(refused)
    expect(audit).toEqual([`${A} wrong_sender`, `${A} wrong_sender`])
    expect(controller.cluster.nodes.size).toBe(0)
    expect(await ask(a, nodeSubject(A, 'hello'), aHello(A))).toMatchObject({
      answered: true,
      answer: { body: { op: 'welcome' } },
    })
    await controller.stop()
    clock.stop()
  })

  test('lets a client submit, watch and cancel its tasks, invisible to another client', async () => {
    const clock = createSystemClock()
    const bus = await connect('controller')
    const controller = createController({
      clock,
      random: createSystemRandom(),
      bus,
      store: createMemoryStore(),
    })
    await controller.start()
    await settled(bus)
    const [lab, other] = [await connect('client-lab'), await connect('client-other')]
    const submitted = await ask(lab, clientSubject('lab', 'submit'), aSubmission())
    expect(submitted).toMatchObject({ answered: true, answer: { body: { op: 'task', state: 'pending' } } })
    const [task] = [...controller.views.openTasks()]
    const task_id = task?.spec.id ?? ''
    expect(task?.spec.owner).toBe('nats:lab')
    const hidden = { answered: true, answer: { body: { op: 'refused', reason: 'not_found' } } }
    expect(await ask(other, clientSubject('other', 'get'), { op: 'get', task_id })).toMatchObject(hidden)
    expect(await ask(other, clientSubject('lab', 'cancel'), { op: 'cancel', task_id })).toEqual({
      answered: false,
      why: 'no_responder',
    })
    const kept = await ask(lab, clientSubject('lab', 'keepalive'), { op: 'keepalive', task_id, busy: false })
    expect(kept).toMatchObject({ answered: true, answer: { body: { op: 'task', task_id } } })
    const cancelled = await ask(lab, clientSubject('lab', 'cancel'), { op: 'cancel', task_id })
    expect(cancelled).toMatchObject({ answered: true, answer: { body: { op: 'task', state: 'cancelled' } } })
    await controller.stop()
    clock.stop()
  })

  test('prevents a client from making the controller publish into the inbox of another client', async () => {
    const clock = createSystemClock()
    const bus = await connect('controller')
    const controller = createController({
      clock,
      random: createSystemRandom(),
      bus,
      store: createMemoryStore(),
    })
    await controller.start()
    await settled(bus)
    const [lab, victim] = [await rawClient('lab'), await rawClient('other')]
    const heard: string[] = []
    victim.subscribe(`${clientInbox('other')}.>`, {
      callback: (_error, { subject }) => void heard.push(`other: ${subject}`),
    })
    lab.subscribe(`${clientInbox('lab')}.>`, {
      callback: (_error, { subject }) => void heard.push(`lab: ${subject}`),
    })
    await Promise.all([victim.flush(), lab.flush()])
    const request = encode(envelopeOf({ op: 'get', task_id: OUTSIDE }))
    for (const reply of [
      `${clientInbox('other')}.1`,
      `${clientInbox('laboratory')}.1`,
      clientInbox('lab'),
      '_INBOX_UABC.1',
    ])
      lab.publish(clientSubject('lab', 'get'), request, { reply })
    await until('all are refused', () => bus.bad.length === 4)
    lab.publish(clientSubject('lab', 'get'), request, { reply: `${clientInbox('lab')}.2` })
    await until('its own inbox is answered', () => heard.length > 0)
    await Promise.all([victim.flush(), lab.flush()])
    expect(heard).toEqual([`lab: ${clientInbox('lab')}.2`])
    expect(new Set(bus.bad.map(({ why }) => why))).toEqual(
      new Set(['reply: must begin with _INBOX_CLIENT.lab.']),
    )
    await Promise.all([lab.close(), victim.close(), controller.stop()])
    clock.stop()
  })

  test('keeps its keys when generated again; a reload adds new parties and removes old ones', async () => {
    const before = readFileSync(out, 'utf8')
    await whole()
    expect(readFileSync(out, 'utf8')).toBe(before)
    const a = await connect('node-a')
    await config('--nodes', 'b,c', '-o', out, '--listen', url.slice('nats://'.length))
    await server.reload(readFileSync(out, 'utf8'))
    await connect('node-c')
    await until('a is out', () => a.states.some((state) => /Authorization/i.test(state)))
  })

  test('never replaces a file that an operator wrote, and reports invalid keys', async () => {
    const own = join(folder, 'own.conf')
    writeFileSync(own, 'port: 4222\n')
    expect(await config('-o', own)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/own\.conf exists and was not created by/) as string,
    })
    expect(readFileSync(own, 'utf8')).toBe('port: 4222\n')
    writeFileSync(join(folder, 'keys', 'node-bad.nk'), 'SUAAA\n')
    const wrong: readonly (readonly [readonly string[], RegExp])[] = [
      [
        ['--nodes', 'bad', '-o', out],
        /^error: .*node-bad\.nk does not contain the seed of an nkey user.*\n$/,
      ],
      [['--nodes', 'a b', '-o', out], /^error: .*It must be names of letters.*\n$/],
      [['--nodes', 'a,a', '-o', out], /without duplicates/],
      [['--tls-cert', 'x', '-o', out], /^error: --tls-cert and --tls-key must be specified together\n$/],
      [['-o', join(own, 'nats.conf')], /^error: --out .*cannot be created: E[A-Z]+: .*\n$/],
    ]
    for (const [args, says] of wrong)
      expect(await config(...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(says) as string })
  })
})
