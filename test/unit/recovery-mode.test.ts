/**
 * After a restore, attempts of known tasks continue, unknown ones are quarantined, and no attempt is killed
 * or run twice.
 */
import { expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createController } from '../../controller/controller.ts'
import type { Batch, Store, StoredState } from '../../controller/ports/store.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { Answer } from '../../controller/model/command.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { EMPTY_STATE, restored, SetBackWorld } from '../support/set-back-world.ts'

const NAMES = ['n1', 'n2', 'n3']

/**
 * The backup contains `running` as running and `waiting` as pending (on hold); the other tasks came later.
 */
async function afterRestore(
  act: (world: SetBackWorld) => Promise<void> = () => Promise.resolve(),
  down: readonly string[] = [],
) {
  const world = await SetBackWorld.of(NAMES)
  world.submit({ id: 'running', vramMib: 1_000, onNodeLoss: 'requeue' })
  await world.pass(10_000)
  world.submit({ id: 'waiting', vramMib: 1_000 })
  world.controller.commands.holdTask('waiting', 'test', () => {})
  const backup = await world.stored()
  await world.pass(1_000)
  const held = await world.stored()
  world.controller.commands.releaseTask('waiting', 'test', () => {})
  world.submit({ id: 'later', vramMib: 1_000 })
  await world.pass(10_000)
  expect(['running', 'waiting', 'later'].map((id) => world.runsOn(id).length)).toEqual([1, 1, 1])
  await act(world)
  for (const name of down) world.stopServer(name)
  world.events.length = 0
  await world.setBack(restored(backup.openTasks.length === 2 ? backup : held))
  return world
}

function recoveryOf(world: SetBackWorld) {
  return world.controller.cluster.recovery
}

it('An attempt of a task that is pending in the store is adopted, others are quarantined', async () => {
  const world = await afterRestore()
  await world.pass(13_000)
  expect(recoveryOf(world)).toBeNull()
  expect(['running', 'waiting'].map((id) => [world.task(id)?.state, world.task(id)?.attempt])).toEqual([
    ['running', 1],
    ['running', 1],
  ])
  const [on] = world.runsOn('later')
  expect(world.node(on ?? '')?.quarantine).toMatchObject([{ taskId: 'later', attempt: 1, vramMib: 1_000 }])
  expect(world.eventsOf('recovery').map(({ data }) => [data['alarm'], data['is_on']])).toEqual([
    ['RECOVERY', true],
    [null, false],
  ])
  await world.pass(400_000)
  expect(['running', 'waiting', 'later'].map((id) => world.runsOn(id).length)).toEqual([1, 1, 1])
  expect(world.runs.takeDoubles()).toEqual([])
  expect(world.eventsOf('task_finished')).toEqual([])
})

it('No task is placed until every node has reported or the recovery is ended by hand', async () => {
  const world = await afterRestore(undefined, ['n3'])
  world.submit({ id: 'new', vramMib: 100 })
  await world.pass(60_000)
  expect(world.task('new')?.state).toBe('pending')
  expect(world.controller.views.explain(world.task('new') as never)?.primary.reason).toBe('RECOVERY')
  expect(world.controller.views.alarms().map(({ code }) => code)).toContain('RECOVERY')
  world.controller.commands.finishRecovery('admin', () => {})
  await world.pass(100)
  expect(world.task('new')?.state).toBe('running')
  expect((await world.stored()).recovery).toBeNull()
})

it('A task that its node no longer has ends as lost with result_unknown, without a requeue', async () => {
  const world = await afterRestore(async (before) => {
    before.controller.commands.cancelTask('running', 'test', () => {})
    await before.pass(10_000)
    expect(before.runsOn('running')).toEqual([])
  })
  await world.pass(13_000)
  expect(
    world.eventsOf('task_finished').map(({ taskId, data }) => [taskId, data['state'], data['code']]),
  ).toEqual([['running', 'lost', 'result_unknown']])
  expect(world.eventsOf('task_returned')).toEqual([])
})

it('An unconfirmed start without an attempt ends as lost with result_unknown', async () => {
  const world = await SetBackWorld.of(NAMES)
  world.submit({ id: 'a', vramMib: 1_000, onNodeLoss: 'requeue' })
  await world.pass(10_000)
  const backup = await world.stored()
  const isUnconfirmed = { startedAt: null, confirmed: null, residency: 'none' } as const
  const openTasks = backup.openTasks.map((task) => ({
    ...task,
    state: 'assigned' as const,
    firstStartedAt: null,
    placement: task.placement === null ? null : { ...task.placement, ...isUnconfirmed },
  }))
  world.controller.commands.cancelTask('a', 'test', () => {})
  await world.pass(10_000)
  expect(world.runsOn('a')).toEqual([])
  world.events.length = 0
  await world.setBack(restored({ ...backup, openTasks }))
  await world.pass(60_000)
  expect(world.runsOn('a')).toEqual([])
  expect(
    world.eventsOf('task_finished').map(({ taskId, data }) => [taskId, data['state'], data['code']]),
  ).toEqual([['a', 'lost', 'result_unknown']])
  expect(world.eventsOf('task_returned')).toEqual([])
})

it('VRAM of a quarantined attempt counts as noswap, also after a restart of the controller', async () => {
  const world = await afterRestore()
  await world.pass(13_000)
  const [on = ''] = world.runsOn('later')
  const noswapMib = () => world.node(on)?.gpus[0]?.noswapMib
  const before = noswapMib()
  expect(before).toBeGreaterThanOrEqual(1_000)
  expect(world.node(on)?.gpus[0]?.quarantinedMib).toBe(1_000)
  await world.setBack(await world.stored())
  expect(noswapMib()).toBe(before)
  await world.pass(30_000)
  expect(noswapMib()).toBe(before)
  expect(world.runsOn('later')).toEqual([on])
  expect(world.controller.views.alarms().map(({ code }) => code)).toEqual(['QUARANTINE'])
})

it('An adopted attempt becomes a task of the named owner, and its VRAM counts once', async () => {
  const world = await afterRestore()
  await world.pass(13_000)
  const [on = ''] = world.runsOn('later')
  const answers: Answer<unknown>[] = []
  const adoption = {
    taskId: 'later',
    attempt: 1,
    nodeId: nodeIdFromName(on),
    name: 'x',
    owner: 'ada',
    command: ['x'],
    limits: null,
    image: 'busybox',
  }
  world.controller.commands.adoptAttempt(
    { ...adoption, gpuMode: 'shared', noswap: 0, priority: 2, onNodeLoss: 'wait' },
    'admin',
    (answer) => answers.push(answer),
  )
  await world.pass(10_000)
  expect(answers.map(({ ok }) => ok)).toEqual([true])
  expect(world.task('later')).toMatchObject({
    state: 'running',
    attempt: 1,
    // Another attempt runs in the image, too.
    spec: { owner: 'ada', image: 'busybox' },
  })
  expect(world.node(on)).toMatchObject({ quarantine: [], gpus: [{ quarantinedMib: 0, quarantinedCount: 0 }] })
  const total = world.node(on)?.gpus[0]
  expect((total?.noswapMib ?? 0) + (total?.swappableMib ?? 0)).toBe(1_000 * (total?.placements.length ?? 0))
  world.controller.commands.cancelTask('later', 'ada', () => {})
  await world.pass(1_000)
  expect(world.runsOn('later')).toEqual([])
})

it('A quarantined attempt that an administrator stops ends with the next heartbeat', async () => {
  const world = await afterRestore()
  await world.pass(13_000)
  const [on = ''] = world.runsOn('later')
  world.controller.commands.stopAttempt(
    { taskId: 'later', attempt: 1, nodeId: nodeIdFromName(on) },
    'admin',
    () => {},
  )
  await world.pass(13_000)
  expect(world.runsOn('later')).toEqual([])
  expect(world.node(on)).toMatchObject({ quarantine: [], gpus: [{ quarantinedMib: 0 }] })
  expect(world.eventsOf('attempt_settled').map(({ data }) => data['how'])).toEqual(['stop_ordered', 'ended'])
})

it('A node that returns after the recovery has its unknown attempts quarantined, not stopped', async () => {
  const world = await afterRestore()
  const [on = ''] = world.runsOn('later')
  world.stopServer(on)
  world.controller.commands.finishRecovery('admin', () => {})
  await world.pass(30_000)
  world.startServer(on)
  await world.pass(30_000)
  expect(world.runsOn('later')).toEqual([on])
  expect(world.node(on)?.quarantine).toMatchObject([{ taskId: 'later' }])
})

it('A result that a node still has completes a task that is pending in the store', async () => {
  const world = await afterRestore(async (before) => {
    // No controller receives the end: it is stopped when the attempt ends.
    await before.stopController()
    const [on = ''] = before.runsOn('waiting')
    before.servers.get(on)?.endTasks()
    await before.pass(5_000)
    await before.startController(await before.stored())
    await before.stopController()
  })
  await world.pass(20_000)
  expect(world.eventsOf('task_finished').map(({ taskId }) => taskId)).toContain('waiting')
  expect(world.runsOn('waiting')).toEqual([])
  expect(world.runs.takeDoubles()).toEqual([])
})

it('A start that fails right after it took its epoch leaves no gap in the event numbers', async () => {
  const stored: StoredState = {
    ...EMPTY_STATE,
    marks: { epoch: 5, nextTaskSeq: 1, nextEventSeq: 8, nextDecision: 1 },
  }
  const inner = createMemoryStore({ initial: restored(stored) })
  const batches: Batch[] = []
  const store: Store = { ...inner, commit: (batch) => (batches.push(batch), inner.commit(batch)) }
  const clock = new VirtualClock(1_000_000)
  const bus = plainBus(clock, 'wire')
  await createController({ clock, random: createSeededRandom('start'), bus, store }).start()
  const [first] = batches
  expect([first?.events.length, first?.marks.nextEventSeq]).toEqual([0, 8])
})
