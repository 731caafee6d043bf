/**
 * The consequences of silence (R4, R5), in virtual time with production code on both sides. Leases last 10 s,
 * with a margin of 5 s.
 */
import { describe, expect, it } from 'vitest'
import { FaultWorld } from '../support/fault-world.ts'

/** 1.05 leases, the margin, and one second for the interval of the check. */
const LEASE_OVER_MS = 15_500 + 1_100
/** Delay from the loss of an attempt soon after its start to the next attempt (`max_requeues`). */
const REQUEUE_DELAY_MS = 10_000
const HOUR = 3_600_000

async function worldWith(options: ConstructorParameters<typeof FaultWorld>[0] = {}): Promise<FaultWorld> {
  const world = new FaultWorld(options)
  await world.startAll()
  return world
}

/** Returns the node of the only attempt, once it runs and its server knows that the controller knows. */
async function runningNode(world: FaultWorld, id: string): Promise<string> {
  expect(await world.until(() => world.stateOf(id) === 'running', 10_000)).toBe(true)
  await world.run(100)
  return world.runningOn(id)[0] as string
}

function statusOf(world: FaultWorld, name: string): string | undefined {
  return world.controller.views.node(world.idOf(name))?.status
}

describe('a silent node', () => {
  it('A silent node is first suspect, then unreachable, and up at its next contact', async () => {
    const world = await worldWith()
    world.network.cutOff.add('n1')
    await world.run(2_500)
    expect(statusOf(world, 'n1')).toBe('up')
    await world.run(3_000)
    expect(statusOf(world, 'n1')).toBe('suspect')
    await world.run(8_000)
    expect(statusOf(world, 'n1')).toBe('suspect')
    expect(await world.until(() => statusOf(world, 'n1') === 'unreachable', LEASE_OVER_MS - 13_000)).toBe(
      true,
    )
    world.network.cutOff.clear()
    expect(await world.until(() => statusOf(world, 'n1') === 'up', 5_000)).toBe(true)
    expect(statusOf(world, 'n2')).toBe('up')
  })

  it('A suspect node gets no placement', async () => {
    const world = await worldWith()
    world.network.cutOff.add('n1')
    await world.run(5_000)
    for (let i = 0; i < 4; i++) world.submit({ id: `t${i}`, ms: HOUR })
    await world.run(2_000)
    expect(world.eventsOf('task_placed').every((event) => event.nodeId === world.idOf('n2'))).toBe(true)
  })

  it.each([
    ['wait', 'unreachable'],
    ['fail', 'lost'],
  ] as const)('A task on a silent node with policy %s becomes %s', async (onNodeLoss, state) => {
    const world = await worldWith()
    world.submit({ id: 't', ms: HOUR, onNodeLoss })
    world.network.cutOff.add(await runningNode(world, 't'))
    await world.run(10_000)
    expect(world.stateOf('t')).toBe('running')
    await world.run(LEASE_OVER_MS - 10_000)
    expect(world.stateOf('t')).toBe(state)
    await world.run(60_000)
    expect(world.stateOf('t')).toBe(state)
    expect(world.eventsOf('task_placed', 't')).toHaveLength(1)
    expect(world.violations).toEqual([])
  })

  it('A requeued task runs on another node after its old attempt was suspended', async () => {
    const world = await worldWith()
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'requeue' })
    const first = await runningNode(world, 't')
    world.network.cutOff.add(first)
    await world.run(9_000)
    expect(world.runningOn('t')).toEqual([first])
    await world.run(2_500)
    expect(world.runningOn('t')).toEqual([])
    const second = first === 'n1' ? 'n2' : 'n1'
    expect(await world.until(() => world.stateOf('t') === 'pending', LEASE_OVER_MS - 10_000)).toBe(true)
    // Without the delay after a short attempt: the first server has only suspended it.
    world.controller.commands.releaseTask('t', 'alice', () => {})
    expect(await world.until(() => world.runningOn('t').includes(second), 2_000)).toBe(true)
    expect(world.livesOn('t').toSorted((a, b) => (a < b ? -1 : 1))).toEqual(['n1', 'n2'])
    world.network.cutOff.clear()
    expect(await world.until(() => world.livesOn('t').join() === second, 10_000)).toBe(true)
    await world.run(60_000)
    expect(world.stateOf('t')).toBe('running')
    expect(world.eventsOf('task_placed', 't')).toHaveLength(2)
    expect(world.violations).toEqual([])
  })

  it('A task that waited for its node runs again, and its transitions are events with causes', async () => {
    const world = await worldWith()
    world.submit({ id: 't', ms: HOUR })
    const first = await runningNode(world, 't')
    world.network.cutOff.add(first)
    await world.until(() => world.stateOf('t') === 'unreachable')
    await world.run(10)
    expect(world.runningOn('t')).toEqual([first])
    const [lost] = world.eventsOf('task_unreachable', 't')
    const cause = world.events.find((event) => event.seq === lost?.causedBy)
    expect(cause).toMatchObject({
      kind: 'node_status',
      nodeId: world.idOf(first),
      data: { status: 'unreachable' },
    })
    world.network.cutOff.clear()
    expect(await world.until(() => world.stateOf('t') === 'running', 5_000)).toBe(true)
    await world.run(10)
    expect(world.eventsOf('task_reachable', 't')).toHaveLength(1)
    expect(world.eventsOf('task_placed', 't')).toHaveLength(1)
  })

  it('An unreachable task adds no demand, because its service is unknown', async () => {
    const world = await worldWith()
    world.submit({ id: 't', ms: HOUR })
    world.network.cutOff.add(await runningNode(world, 't'))
    await world.until(() => world.stateOf('t') === 'unreachable')
    const { views } = world.controller
    const task = views.openTask('t')
    if (task === undefined) throw new Error('t is gone')
    const before = views.taskCounters(task)
    await world.run(30_000)
    expect(views.taskCounters(task)).toEqual(before)
    world.network.cutOff.clear()
    await world.until(() => world.stateOf('t') === 'running')
    await world.run(10_000)
    expect(views.taskCounters(task).served - before.served).toBeGreaterThan(9_000_000)
  })

  it('An unconfirmed start returns to the queue after two leases, whatever its policy', async () => {
    const world = await worldWith({ nodes: 1 })
    // The start arrives, and no message from the node does.
    world.network.onDelivery = (subject, message) => {
      if (message.body.op === 'start') world.network.cutOff.add('n1')
      expect(subject).not.toBe('')
    }
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'wait' })
    await world.until(() => world.livesOn('t').length > 0, 5_000)
    await world.run(LEASE_OVER_MS)
    expect([world.stateOf('t'), world.runningOn('t')]).toEqual(['assigned', []])
    await world.run(8_000)
    expect(world.livesOn('t')).toEqual([])
    await world.run(4_000)
    expect(world.stateOf('t')).toBe('pending')
    expect(world.eventsOf('task_returned', 't')[0]?.data).toMatchObject({ reason: 'start_unconfirmed' })
  })

  it('A start that a server accepted before it ended is repeated after its restart', async () => {
    const world = await worldWith({ nodes: 1 })
    world.slowToLaunch.add('n1')
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'wait' })
    await world.run(1_000)
    expect(world.stateOf('t')).toBe('assigned')
    world.killServer('n1')
    world.slowToLaunch.clear()
    world.startServer('n1')
    await world.run(3_000)
    expect(world.eventsOf('task_returned', 't')[0]?.data).toMatchObject({ reason: 'never_seen' })
    expect([world.stateOf('t'), world.livesOn('t')]).toEqual(['running', ['n1']])
  })

  it('A stop that a server accepted before the launch is repeated after its restart', async () => {
    const world = await worldWith({ nodes: 1 })
    world.slowToLaunch.add('n1')
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'wait' })
    await world.run(1_000)
    world.controller.commands.cancelTask('t', 'alice', () => {})
    await world.run(1_000)
    world.killServer('n1')
    world.slowToLaunch.clear()
    world.startServer('n1')
    await world.run(3_000)
    expect(world.stateOf('t')).toBe('cancelled')
  })
})

describe('the run lease', () => {
  it('The longest outstanding run lease counts: a recently lowered lease still holds', async () => {
    const world = await worldWith({ config: { run_lease_seconds: 60 } })
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'requeue' })
    const first = await runningNode(world, 't')
    world.network.cutOff.add(first)
    world.controller.commands.putConfig({ run_lease_seconds: 15 }, null, () => {})
    await world.run(50_000)
    expect([world.stateOf('t'), world.runningOn('t')]).toEqual(['running', [first]])
    expect(
      await world.until(() => world.eventsOf('task_placed', 't').length === 2, 20_000 + REQUEUE_DELAY_MS),
    ).toBe(true)
    expect(world.violations).toEqual([])
  })

  it('The run lease survives a restart of the controller', async () => {
    const world = await worldWith()
    world.controller.commands.putConfig({ run_lease_seconds: 60 }, null, () => {})
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'requeue' })
    const first = await runningNode(world, 't')
    await world.run(3_000)
    world.network.cutOff.add(first)
    world.controller.commands.putConfig({ run_lease_seconds: 15 }, null, () => {})
    await world.run(100)
    world.killController()
    await world.startController()
    await world.run(50_000)
    expect([world.stateOf('t'), world.runningOn('t')]).toEqual(['running', [first]])
    await world.until(() => world.eventsOf('task_placed', 't').length === 2, 30_000)
    expect(world.violations).toEqual([])
  })

  it('The run lease restarts for every node when the controller starts', async () => {
    const world = await worldWith()
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'requeue' })
    world.network.cutOff.add(await runningNode(world, 't'))
    await world.run(9_000)
    world.killController()
    await world.startController()
    await world.run(14_000)
    expect(world.stateOf('t')).toBe('running')
    await world.run(3_000 + REQUEUE_DELAY_MS)
    expect(world.eventsOf('task_placed', 't')).toHaveLength(2)
  })

  it('The run lease cannot be shorter than three heartbeats', async () => {
    const world = await worldWith()
    const answers: unknown[] = []
    world.controller.commands.putConfig({ heartbeat_seconds: 6 }, null, (answer) => answers.push(answer))
    await world.run(10)
    expect(answers).toMatchObject([
      { ok: false, refusal: { code: 'invalid', problems: [{ field: 'run_lease_seconds' }] } },
    ])
  })
})

describe('the requeue freeze', () => {
  const cut = (world: FaultWorld, ...names: string[]): void =>
    names.forEach((name) => world.network.cutOff.add(name))

  async function fleet(): Promise<FaultWorld> {
    const world = await worldWith({ nodes: 5 })
    for (let i = 1; i <= 5; i++) world.submit({ id: `t${i}`, ms: HOUR, onNodeLoss: 'requeue', vramMib: 900 })
    expect(
      await world.until(() => [1, 2, 3, 4, 5].every((i) => world.stateOf(`t${i}`) === 'running'), 10_000),
    ).toBe(true)
    return world
  }

  it('Requeues are frozen when 55% of the nodes fall silent together, until they return', async () => {
    const world = await fleet()
    cut(world, 'n1', 'n2', 'n3')
    await world.run(60_000)
    expect(world.eventsOf('requeue_freeze')).toMatchObject([
      { data: { alarm: 'MASS_SILENCE', is_frozen: true, silent_nodes: 3, nodes: 5 } },
    ])
    expect(world.eventsOf('task_placed')).toHaveLength(5)
    expect(world.controller.views.counts()).toMatchObject({ unreachable: 3, running: 2, lost: 0 })
    world.network.cutOff.clear()
    await world.until(() => world.eventsOf('requeue_freeze').length === 2)
    expect(world.eventsOf('requeue_freeze')[1]?.data).toMatchObject({ is_frozen: false, by: null })
    // The lease has ended the tasks there; they run again once all nodes are back.
    expect(await world.until(() => world.controller.views.counts().running === 5, 60_000)).toBe(true)
    expect(world.violations).toEqual([])
  })

  it('When most nodes return, the freeze ends and only the silent ones are requeued', async () => {
    const world = await fleet()
    cut(world, 'n1', 'n2', 'n3', 'n4')
    await world.run(60_000)
    for (const name of ['n1', 'n2']) world.network.cutOff.delete(name)
    await world.until(() => world.eventsOf('requeue_freeze').length === 2)
    await world.run(15_000)
    const away = (name: string) =>
      world.eventsOf('task_returned').filter(({ nodeId }) => nodeId === world.idOf(name))
    expect([away('n3'), away('n4')]).toEqual([[], []])
    world.network.cutOff.delete('n3')
    await world.run(10_000)
    expect(away('n3').map(({ data }) => data['reason'])).not.toContain('node_unreachable')
    expect(await world.until(() => away('n4').length === 1, 10_000)).toBe(true)
    expect(away('n4')[0]?.data).toMatchObject({ reason: 'node_unreachable' })
    expect(world.violations).toEqual([])
  })

  it('Requeues are not frozen when fewer nodes are silent, or not at the same time', async () => {
    const world = await fleet()
    cut(world, 'n1', 'n2')
    await world.run(LEASE_OVER_MS + 1_000)
    cut(world, 'n3')
    await world.run(60_000)
    expect(world.eventsOf('requeue_freeze')).toEqual([])
    expect(world.eventsOf('task_returned')).toHaveLength(3)
  })

  it('An operator can release the freeze, and it does not return for the same nodes', async () => {
    const world = await fleet()
    cut(world, 'n1', 'n2', 'n3')
    await world.run(30_000)
    expect(world.controller.views.counts().unreachable).toBe(3)
    world.controller.commands.releaseRequeueFreeze('alice', () => {})
    await world.run(30_000)
    expect(world.eventsOf('requeue_freeze')).toHaveLength(2)
    expect(world.eventsOf('requeue_freeze')[1]?.data).toMatchObject({ is_frozen: false, by: 'alice' })
    expect(world.controller.views.counts()).toMatchObject({ unreachable: 0, pending: 3 })
    expect(world.violations).toEqual([])
  })

  it('The freeze ends when the silent nodes are removed', async () => {
    const world = await worldWith({ nodes: 5 })
    cut(world, 'n1', 'n2', 'n3')
    await world.run(30_000)
    expect(world.eventsOf('requeue_freeze')).toHaveLength(1)
    for (const name of ['n1', 'n2']) world.controller.commands.forgetNode(world.idOf(name), 'alice', () => {})
    await world.run(2_000)
    expect(world.eventsOf('requeue_freeze')).toHaveLength(2)
    expect(
      [...world.controller.views.nodes()].map(({ name }) => name).toSorted((a, b) => (a < b ? -1 : 1)),
    ).toEqual(['n3', 'n4', 'n5'])
    world.network.cutOff.clear()
    expect(await world.until(() => world.controller.views.totals().nodesUp === 5, 10_000)).toBe(true)
  })

  it('Three silent nodes do not freeze requeues', async () => {
    const world = await worldWith({ nodes: 3 })
    cut(world, 'n1', 'n2', 'n3')
    await world.run(30_000)
    expect(world.eventsOf('requeue_freeze')).toEqual([])
  })
})

describe('an operator and an unreachable task', () => {
  async function unreachable(): Promise<FaultWorld> {
    const world = await worldWith()
    world.submit({ id: 't', ms: HOUR })
    world.network.cutOff.add(await runningNode(world, 't'))
    expect(await world.until(() => world.stateOf('t') === 'unreachable', 30_000)).toBe(true)
    return world
  }

  it('An unreachable task is requeued by an operator once its server has answered the stop', async () => {
    const world = await unreachable()
    world.controller.commands.requeueTask('t', false, 'alice', () => {})
    await world.run(60_000)
    expect(world.stateOf('t')).toBe('unreachable')
    world.network.cutOff.clear()
    expect(await world.until(() => world.eventsOf('task_placed', 't').length === 2, 20_000)).toBe(true)
    expect(world.violations).toEqual([])
  })

  it('An unreachable task is requeued by an operator at once only when declared fenced', async () => {
    const world = await unreachable()
    const [name] = world.runningOn('t')
    world.killServer(name as string)
    world.controller.commands.requeueTask('t', true, 'alice', () => {})
    expect(await world.until(() => world.stateOf('t') === 'running', 5_000)).toBe(true)
    const answers: unknown[] = []
    world.controller.commands.requeueTask('t', true, 'alice', (answer) => answers.push(answer))
    expect(answers).toMatchObject([{ ok: false, refusal: { code: 'conflict' } }])
    expect(world.violations).toEqual([])
  })

  it('An unreachable task is cancelled by an operator without its server', async () => {
    const world = await unreachable()
    world.controller.commands.cancelTask('t', 'alice', () => {})
    await world.run(100)
    expect(world.stateOf('t')).toBe('cancelled')
    world.network.cutOff.clear()
    expect(await world.until(() => world.livesOn('t').length === 0, 10_000)).toBe(true)
  })
})
