/** Every event has the right cause and names its actor. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { EVENT_KINDS, type Event, type EventKind } from '../../controller/model/event.ts'
import { recordOfTask, taskOf } from '../../controller/state/records.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { workloadOf } from '../../simulator/scenario/generate.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { World } from '../../simulator/world/world.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'
import { busyFor, HOUR, MINUTE, node, play, QUICK_SWAP, task } from '../support/world-builder.ts'

/** Events with an external cause have no cause among the events. */
const FROM_OUTSIDE: ReadonlySet<EventKind> = new Set([
  'config_changed',
  'node_registered',
  'node_status',
  'node_config_changed',
  'node_forgotten',
  'node_drain',
  'group_changed',
  'group_deleted',
  'task_submitted',
  'reserve_breached',
  'requeue_freeze',
  'duplicate_node',
  'store_behind',
  'recovery',
  'attempt_quarantined',
  'attempt_settled',
  'leader_changed',
])

/** Describes the wrong causes. */
function wrongCauses(events: readonly Event[]): string[] {
  const bySeq = new Map(events.map((event) => [event.seq, event]))
  const latest = new Map<string, Event>()
  return events.flatMap((event) => {
    const before = event.taskId === null ? undefined : latest.get(event.taskId)
    if (event.taskId !== null) latest.set(event.taskId, event)
    const cause = event.causedBy === null ? null : (bySeq.get(event.causedBy) ?? null)
    const says =
      `${event.seq} ${event.kind} ${JSON.stringify(event.data)} because of ${event.causedBy} ` +
      `${cause?.kind}`
    if (FROM_OUTSIDE.has(event.kind)) return event.causedBy === null ? [] : [says]
    if (cause === null || cause.seq >= event.seq) return [says]
    const forTask = /^for (.*)$/.exec(String(event.data['because']))?.[1]
    if (forTask !== undefined) {
      const victims = (cause.data['victims'] ?? []) as readonly { readonly id: string }[]
      return cause.kind === 'swap_decided' &&
        cause.taskId === forTask &&
        victims.some(({ id }) => id === event.taskId)
        ? []
        : [says]
    }
    if (cause.kind === 'node_status' || cause.kind === 'node_drain')
      return cause.nodeId === event.nodeId ? [] : [says]
    return cause === before ? [] : [says]
  })
}

test.each(['swap-fairness-basic', 'multi-gpu', 'all-p0'])(
  'In %s each event has the event that led to it as its cause',
  async (name) => {
    const { scenario } = loadScenario(
      new URL(`../../scenarios/${name}.scenario.yaml`, import.meta.url).pathname,
    )
    const events: Event[] = []
    const world = new World(scenario, {
      seed: 1,
      isJournalOff: true,
      onEvents: (batch) => void events.push(...batch),
    })
    await world.start()
    world.feed(workloadOf(scenario, world.random))
    await world.runUntil(4 * HOUR, () => world.isIdle())
    expect(
      events.filter(
        ({ kind, data }) => kind === 'task_residency' && String(data['because']).startsWith('for '),
      ).length,
    ).toBeGreaterThan(5)
    expect(wrongCauses(events)).toEqual([])
  },
)

test('The decision is the cause of a swap-out, and the swap-out that of the return', async () => {
  const nodes = [node({ name: 'n', swap: QUICK_SWAP })]
  const tasks = [
    task({ id: 'a', vramMib: 700, work: busyFor(1000) }),
    task({ id: 'b', vramMib: 700, at: 10 * MINUTE, work: busyFor(1000) }),
  ]
  const { events } = await play(
    { nodes, tasks, config: { default_vram_overcommit_percent: 100 } },
    { untilMs: HOUR },
  )
  expect(wrongCauses(events)).toEqual([])
})

test('Tasks of a drained node are moved because of the drain', async () => {
  const { events } = await play(
    {
      nodes: [node({ name: 'n' })],
      tasks: [task({ id: 'a', work: busyFor(HOUR), onNodeLoss: 'requeue' })],
      commands: [{ at: MINUTE, drain: 'n', moveAfterMs: 1000 }],
    },
    { untilMs: 10 * MINUTE },
  )
  const drain = events.find(({ kind }) => kind === 'node_drain')
  const stopped = events.find(({ kind }) => kind === 'task_updated')
  expect(drain).toMatchObject({ nodeId: nodeIdFromName('n') })
  expect(stopped?.causedBy).toBe(drain?.seq)
  expect(wrongCauses(events)).toEqual([])
})

test('A task keeps its latest event over a restart of the controller', () => {
  const cluster = new ClusterBuilder()
  cluster.addNode({ id: 'n', gpus: [100] })
  const a = cluster.submit({ vramMib: 60 })
  cluster.settle()
  expect(a.lastEventSeq).toBeGreaterThan(1)
  expect(taskOf(recordOfTask(a)).lastEventSeq).toBe(a.lastEventSeq)
})

test('docs/events.md names every kind', () => {
  const text = readFileSync(new URL('../../docs/events.md', import.meta.url), 'utf8')
  for (const kind of EVENT_KINDS) expect(text).toContain(`\`${kind}\``)
})
