/**
 * Messages out of order, servers with lost state or a duplicate, and commands with their limits (R6, R7, R9,
 * R11), in virtual time.
 */
import { describe, expect, it } from 'vitest'
import type { Envelope } from '../../protocol/envelope.ts'
import { MAX_IN_FLIGHT_PER_NODE } from '../../controller/wire/outbound.ts'
import { FaultWorld } from '../support/fault-world.ts'
import { NO_FAULTS } from '../support/faulty-network.ts'

const HOUR = 3_600_000

async function worldWith(options: ConstructorParameters<typeof FaultWorld>[0] = {}): Promise<FaultWorld> {
  const world = new FaultWorld(options)
  await world.startAll()
  return world
}

async function running(world: FaultWorld, id: string): Promise<string> {
  expect(await world.until(() => world.stateOf(id) === 'running', 20_000)).toBe(true)
  await world.run(100)
  return world.runningOn(id)[0] as string
}

/** Delivers an earlier message again. */
function replay(world: FaultWorld, subject: string, message: Envelope): void {
  world.network.endpoint('replayer').publish(subject, message)
}

describe('a late message', () => {
  it('A late snapshot from before a task does not end the task', async () => {
    const world = await worldWith({ nodes: 1 })
    const said: { subject: string; message: Envelope }[] = []
    world.network.onDelivery = (subject, message) => said.push({ subject, message })
    await world.run(3_000)
    const snapshots = said.filter(({ message }) => message.body.op === 'heartbeat')
    world.submit({ id: 't', ms: HOUR })
    await running(world, 't')
    for (const { subject, message } of snapshots) replay(world, subject, message)
    await world.run(3_000)
    expect(world.stateOf('t')).toBe('running')
    // The same after a restart, when the controller does not know the node's latest snapshot.
    world.killController()
    await world.startController()
    for (const { subject, message } of snapshots) replay(world, subject, message)
    await world.run(60_000)
    expect([world.stateOf('t'), world.livesOn('t')]).toEqual(['running', ['n1']])
  })

  it('A late hello from before a task is not answered', async () => {
    const world = new FaultWorld({ nodes: 1 })
    const hellos: { subject: string; message: Envelope }[] = []
    world.network.onDelivery = (subject, message) => {
      if (message.body.op === 'hello') hellos.push({ subject, message })
    }
    await world.startAll()
    world.submit({ id: 't', ms: HOUR })
    await running(world, 't')
    for (const { subject, message } of [...hellos]) replay(world, subject, message)
    await world.run(30_000)
    expect([world.stateOf('t'), world.livesOn('t')]).toEqual(['running', ['n1']])
    expect(world.eventsOf('duplicate_node')).toEqual([])
  })

  it('A late message does not prove that the server is alive', async () => {
    const world = await worldWith({ nodes: 1 })
    const said: { subject: string; message: Envelope }[] = []
    world.network.onDelivery = (subject, message) => said.push({ subject, message })
    await world.run(3_000)
    world.killServer('n1')
    for (let i = 1; i <= 20; i++) {
      world.clock.at(world.clock.now() + 1_000 * i, () =>
        said.slice(-5).forEach(({ subject, message }) => replay(world, subject, message)),
      )
    }
    await world.run(6_000)
    expect(world.controller.views.node(world.idOf('n1'))?.status).toBe('suspect')
  })
})

describe('a server that lost its state', () => {
  it('A server that lost its state starts above every known boot; its tasks end in time', async () => {
    const world = await worldWith()
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'requeue' })
    world.submit({ id: 'u', ms: HOUR, onNodeLoss: 'wait', vramMib: 500 })
    const name = await running(world, 't')
    const other = await running(world, 'u')
    for (const each of new Set([name, other])) {
      world.killServer(each)
      world.wipe(each)
      world.startServer(each)
    }
    await world.run(8_000)
    expect([world.stateOf('t'), world.stateOf('u')]).toEqual(['running', 'running'])
    await world.run(12_000)
    expect(world.stateOf('u')).toBe('lost')
    expect(world.eventsOf('task_returned', 't')).toHaveLength(1)
    expect(await world.until(() => world.runningOn('t').length === 1, 10_000)).toBe(true)
    expect(world.violations).toEqual([])
  })

  it('A duplicate of a running server raises an alarm, and no task runs twice', async () => {
    const world = await worldWith()
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'requeue' })
    const name = await running(world, 't')
    world.startClone(name, 'double')
    await world.run(120_000)
    expect(world.eventsOf('duplicate_node').length).toBeGreaterThan(0)
    expect(world.eventsOf('duplicate_node')[0]).toMatchObject({
      nodeId: world.idOf(name),
      data: { alarm: 'DUPLICATE_NODE' },
    })
    expect(world.violations).toEqual([])
  })
})

describe('a restarted controller', () => {
  it('A restarted controller repeats starts and stops that may not have arrived', async () => {
    const world = await worldWith({ nodes: 1 })
    world.submit({ id: 'a', ms: HOUR })
    await running(world, 'a')
    world.network.cutOff.add('n1')
    world.submit({ id: 'b', ms: HOUR })
    world.controller.commands.cancelTask('a', 'alice', () => {})
    await world.run(500)
    expect([world.stateOf('a'), world.stateOf('b')]).toEqual(['running', 'assigned'])
    world.killController()
    await world.startController()
    world.network.cutOff.clear()
    expect(
      await world.until(() => world.stateOf('a') === 'cancelled' && world.stateOf('b') === 'running', 20_000),
    ).toBe(true)
    expect(world.eventsOf('task_placed', 'b')).toHaveLength(1)
  })

  it('When a new controller takes over, the old one can commit nothing more and ends', async () => {
    const world = await worldWith({ nodes: 1 })
    const first = world.controller
    await world.startController()
    expect(world.controller.status.epoch).toBe(first.status.epoch + 1)
    await world.run(5_000)
    expect(world.faults.map(String)).toEqual([expect.stringContaining('has taken over')])
    expect([first.status.isFaulty, world.controller.status.isFaulty]).toEqual([true, false])
  })
})

describe('commands', () => {
  it('Concurrent commands to one node are limited, and all are delivered in the end', async () => {
    const world = await worldWith({ nodes: 1, gpusPerNode: 4, config: { max_tasks_per_gpu: 64 } })
    const underWay = new Set<string>()
    world.network.onDelivery = (_subject, message) => {
      if (message.body.op !== 'start') return
      underWay.add(message.body.task_id)
      // After the first start, nothing is answered and no further message arrives.
      world.network.faults = { ...NO_FAULTS, drop: 1 }
    }
    for (let i = 0; i < 100; i++) world.submit({ id: `t${i}`, ms: 200_000, vramMib: 30 })
    await world.run(1_500)
    expect(underWay.size).toBe(MAX_IN_FLIGHT_PER_NODE)
    world.network.onDelivery = null
    world.network.faults = NO_FAULTS
    expect(await world.until(() => world.controller.views.counts().running === 100, 120_000)).toBe(true)
  })
})

describe('the lease of a task', () => {
  it('A lease lasts while its client renews it, and ends as cancelled', async () => {
    const world = await worldWith({ nodes: 1 })
    world.submit({ id: 'l', ms: HOUR, command: null })
    await running(world, 'l')
    const keep = (busy: boolean): void =>
      world.controller.commands.keepalive('l', busy, (answer) => expect(answer.ok).toBe(true))
    for (let i = 0; i < 5; i++) {
      keep(i % 2 === 0)
      await world.run(40_000)
      expect(world.controller.views.openTask('l')?.placement?.wantsGpu).toBe(i % 2 === 0)
    }
    expect(world.stateOf('l')).toBe('running')
    await world.run(25_000)
    expect(world.stateOf('l')).toBe('cancelled')
    expect(world.eventsOf('task_finished', 'l')[0]?.data).toMatchObject({
      state: 'cancelled',
      reason: 'lease_expired',
    })
    expect(world.livesOn('l')).toEqual([])
  })

  it('A lease also ends while pending, and lasts a minute after a controller restart', async () => {
    const world = await worldWith({ nodes: 1 })
    world.submit({ id: 'l', ms: HOUR, command: null, vramMib: 5_000 })
    await world.run(50_000)
    world.killController()
    await world.startController()
    await world.run(50_000)
    expect(world.stateOf('l')).toBe('pending')
    await world.run(12_000)
    expect(world.stateOf('l')).toBe('cancelled')
  })

  it('A keepalive for a task with a command is refused', async () => {
    const world = await worldWith({ nodes: 1 })
    world.submit({ id: 't', ms: HOUR })
    const answers: unknown[] = []
    world.controller.commands.keepalive('t', true, (answer) => answers.push(answer))
    world.controller.commands.keepalive('absent', true, (answer) => answers.push(answer))
    expect(answers).toMatchObject([
      { ok: false, refusal: { code: 'conflict' } },
      { ok: false, refusal: { code: 'not_found' } },
    ])
    await world.run(120_000)
    expect(world.stateOf('t')).toBe('running')
  })
})
