/** After a start, no task is placed, requeued or given up until the nodes that were up have reported. */
import { expect, it } from 'vitest'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import { SetBackWorld } from '../support/set-back-world.ts'

it('After a start, a submitted task waits until each node that was up has reported', async () => {
  const world = await SetBackWorld.of(['n1', 'n2'])
  world.stopServer('n2')
  const stored = await world.stored()
  await world.stopController()
  await world.startController(stored)
  world.submit({ id: 'a' })
  await world.pass(14_900)
  expect(world.task('a')?.state).toBe('pending')
  expect(world.controller.views.explain(world.task('a') as never)?.primary.reason).toBe('AWAITING_NODES')
  await world.pass(200)
  expect(world.task('a')?.state).toBe('running')
})

it('The wait ends when the last of these nodes has reported', async () => {
  const world = await SetBackWorld.of(['n1', 'n2'])
  await world.setBack(await world.stored())
  world.submit({ id: 'a' })
  await world.pass(6_500)
  expect(world.task('a')?.state).toBe('running')
})

it('An attempt missing on its node is requeued only after the other nodes have reported', async () => {
  const world = await SetBackWorld.of(['n1', 'n2'])
  world.submit({ id: 'a', onNodeLoss: 'requeue' })
  await world.pass(10_000)
  const [on] = world.runsOn('a')
  world.stopServer(on === 'n1' ? 'n2' : 'n1')
  const stored = await world.stored()
  await world.stopController()
  // The node never had an attempt of this task, which the store has as running there.
  const openTasks = stored.openTasks.map((task) => ({ ...task, id: 'b', name: 'b' }))
  await world.startController({ ...stored, openTasks })
  await world.pass(14_900)
  expect(world.node(on ?? '')?.deferred).not.toBeNull()
  expect([world.task('b')?.state, world.eventsOf('task_returned')]).toEqual(['running', []])
  await world.pass(200)
  expect(world.eventsOf('task_returned').map(({ taskId, data }) => [taskId, data['reason']])).toEqual([
    ['b', 'absent'],
  ])
})

it('An attempt that a complete history does not contain is stopped after two snapshots with it', async () => {
  const world = await SetBackWorld.of(['n1'])
  world.submit({ id: 'a' })
  await world.pass(10_000)
  const stored = await world.stored()
  await world.setBack({ ...stored, openTasks: [] })
  while (world.node('n1')?.unknown.length === 0) await world.pass(100)
  expect(world.runsOn('a')).toEqual(['n1'])
  await world.pass(3_000)
  expect(world.runsOn('a')).toEqual(['n1'])
  await world.pass(6_000)
  expect(world.runsOn('a')).toEqual([])
  expect(world.eventsOf('attempt_settled').map(({ data }) => data['how'])).toEqual(['stopped_unknown'])
})

it('After a start, commands to a node follow the first answer to it, and are obeyed at once', async () => {
  const world = await SetBackWorld.of(['n1'])
  const id = nodeIdFromName('n1')
  world.stopServer('n1')
  world.submit({ id: 'a' })
  await world.pass(1_000)
  // The start is decided, and the node has not heard of it.
  const stored = await world.stored()
  expect(stored.openTasks).toMatchObject([{ placement: { nodeId: id } }])
  await world.stopController()
  world.startServer('n1')
  let hellos = 0
  world.bus.subscribe(nodeSubject(id, 'hello'), () => (hellos += 1))
  await world.startController(stored)
  while (hellos === 0) await world.pass(1)
  await world.pass(1)
  expect(world.runsOn('a')).toEqual(['n1'])
})
