/**
 * A store that went back to an earlier state: its controller notices it, sends the nodes no commands, and
 * kills no task (docs/protocol.md).
 */
import { expect, it } from 'vitest'
import type { Envelope } from '../../protocol/envelope.ts'
import type { Heartbeat, NodeEvents } from '../../protocol/messages.ts'
import { everyNode } from '../../protocol/subjects.ts'
import { EMPTY_STATE, SetBackWorld } from '../support/set-back-world.ts'

const NAMES = ['n1', 'n2', 'n3']

/** Six tasks run; the store `earlier` contains three of them. */
async function setBackWithinOneEpoch(): Promise<SetBackWorld> {
  const world = await SetBackWorld.of(NAMES)
  for (const id of ['a', 'b', 'c']) world.submit({ id, vramMib: 2_000 })
  await world.pass(10_000)
  const earlier = await world.stored()
  for (const id of ['d', 'e', 'f']) world.submit({ id, vramMib: 2_000 })
  await world.pass(10_000)
  expect(['a', 'b', 'c', 'd', 'e', 'f'].map((id) => world.runsOn(id).length)).toEqual([1, 1, 1, 1, 1, 1])
  await world.setBack(earlier)
  return world
}

it('A data folder set back within one epoch raises STORE_BEHIND, and no process is killed', async () => {
  const world = await setBackWithinOneEpoch()
  await world.pass(12_000)
  expect(world.eventsOf('store_behind').map(({ data }) => [data['alarm'], data['reason']])).toEqual(
    NAMES.map(() => ['STORE_BEHIND', 'missing_events']),
  )
  expect(world.controller.cluster.isStoreBehind).toBe(true)
  world.submit({ id: 'g', vramMib: 100 })
  await world.pass(400_000)
  expect(['a', 'b', 'c', 'd', 'e', 'f'].map((id) => world.runsOn(id).length)).toEqual([1, 1, 1, 1, 1, 1])
  expect(world.runs.takeDoubles()).toEqual([])
  expect(world.task('g')?.state).toBe('pending')
  expect(world.controller.views.explain(world.task('g') as never)?.primary.reason).toBe('STORE_BEHIND')
  expect(world.eventsOf('task_returned')).toEqual([])
})

it('An empty store in place of the old one is also behind: unknown nodes get no answer', async () => {
  const world = await SetBackWorld.of(NAMES)
  world.submit({ id: 'a' })
  await world.pass(10_000)
  await world.setBack(EMPTY_STATE)
  await world.pass(30_000)
  expect(world.controller.cluster.isStoreBehind).toBe(true)
  expect(world.runsOn('a')).toHaveLength(1)
})

it('A copy of the store with the same epoch is refused by the nodes and reported', async () => {
  const world = await SetBackWorld.of(NAMES)
  world.submit({ id: 'a' })
  await world.pass(10_000)
  const copy = await world.stored()
  await world.setBack(copy)
  await world.pass(30_000)
  expect(world.controller.status.epoch).toBe(2)
  await world.setBack(copy)
  expect(world.controller.status.epoch).toBe(2)
  await world.pass(30_000)
  expect(world.eventsOf('store_behind').map(({ data }) => data['reason'])).toEqual(
    NAMES.map(() => 'other_controller'),
  )
  expect(world.runsOn('a')).toHaveLength(1)
})

it('A controller that continues with its complete store is not behind', async () => {
  const world = await SetBackWorld.of(NAMES)
  world.submit({ id: 'a' })
  await world.pass(10_000)
  await world.setBack(await world.stored())
  await world.pass(30_000)
  expect(world.eventsOf('store_behind')).toEqual([])
  expect(world.task('a')?.state).toBe('running')
  world.submit({ id: 'b' })
  await world.pass(1_000)
  expect(world.task('b')?.state).toBe('running')
})

it('An overtaken message of a node that is ahead is not answered and brings it no task', async () => {
  const world = await SetBackWorld.of(NAMES)
  const heartbeats = new Map<string, Envelope>()
  world.bus.subscribe(everyNode('heartbeat'), (message, subject) => {
    if (!heartbeats.has(subject)) heartbeats.set(subject, message)
  })
  await world.pass(10_000)
  const earlier = await world.stored()
  for (const id of ['a', 'b', 'c']) world.submit({ id, vramMib: 2_000 })
  await world.pass(10_000)
  await world.setBack(earlier)
  await world.pass(12_000)
  expect(world.controller.cluster.aheadCount).toBe(3)
  const replies: Envelope[] = []
  for (const [subject, heartbeat] of heartbeats) {
    const { node_id } = heartbeat.body as Heartbeat
    const events: NodeEvents = {
      op: 'events',
      node_id,
      entries: [{ n: 1, kind: 'started', task_id: 'z', attempt: 1, wants_gpu: true }],
    }
    for (const [verb, body] of [
      ['heartbeat', heartbeat.body],
      ['event', events],
    ] as const)
      world.bus.request(
        subject.replace('heartbeat', verb),
        { ...heartbeat, id: `again ${verb}`, body },
        1_000,
        (outcome) => {
          if (outcome.answered) replies.push(outcome.answer)
        },
      )
  }
  await world.pass(2_000)
  expect(replies).toEqual([])
  expect(NAMES.map((name) => world.node(name)?.status)).toEqual(NAMES.map(() => 'suspect'))
  await world.pass(30_000)
  expect(world.controller.cluster.aheadCount).toBe(3)
  expect(['a', 'b', 'c'].map((id) => world.runsOn(id).length)).toEqual([1, 1, 1])
})

it('One false report from a node does not stop the cluster', async () => {
  const world = await SetBackWorld.of(['n1', 'n2'])
  const other = await SetBackWorld.of(['n3'])
  world.heardAhead({ nodeId: 'liar', name: 'liar', tasks: [] }, 'higher_epoch', {
    epoch: 9_999,
    boot: { counter: 1, random: 'r' },
    seq: 1,
  })
  world.submit({ id: 'a' })
  await world.pass(1_000)
  expect(world.task('a')?.state).toBe('running')
  expect(world.controller.cluster.isStoreBehind).toBe(false)
  expect(other.controller.cluster.aheadCount).toBe(0)
})

it('A task that runs on a node ahead of the store is not placed elsewhere', async () => {
  const world = await SetBackWorld.of(['n1', 'n2', 'n3'])
  const report = {
    task_id: 'a',
    attempt: 1,
    residency: 'resident',
    generation: 1,
    gpus: [0],
    vram_mib: 10,
    wants_gpu: true,
    idle_ms: 0,
  } as const
  world.heardAhead({ nodeId: 'x', name: 'x', tasks: [report] }, 'missing_events', {
    epoch: 1,
    boot: { counter: 1, random: 'r' },
    seq: 1,
  })
  world.submit({ id: 'a' })
  world.submit({ id: 'b' })
  await world.pass(1_000)
  expect([world.task('a')?.state, world.task('b')?.state]).toEqual(['pending', 'running'])
  expect(world.controller.views.explain(world.task('a') as never)?.primary.reason).toBe('STORE_BEHIND')
})
