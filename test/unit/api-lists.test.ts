import { describe, expect, test } from 'vitest'
import { EXPLAINED_TASKS, listTasks, statesOf } from '../../controller/api/tasks/task-list.ts'
import {
  readTaskCursor,
  writeTaskCursor,
  type TaskPosition,
  type TaskSort,
} from '../../controller/api/tasks/task-order.ts'
import type { TaskPage } from '../../controller/api/tasks/schema.ts'
import { apiClient } from '../support/api-client.ts'
import { ZERO_COUNTERS } from '../../controller/metrics/counters.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'

const REQUEST = {
  id: null,
  name: null,
  vramMib: 1000,
  gpuCount: 1,
  gpuMode: 'shared',
  noswap: 0,
  groups: [],
  labels: {},
  owner: null,
  command: null,
  maxRuntimeSeconds: 60,
  onNodeLoss: 'wait',
} as const

/**
 * Creates tasks 1 to `count` with every priority in turn; those for which `isFinal` returns true are
 * completed.
 */
function worldOfTasks(count: number, isFinal: (seq: number) => boolean): FakeController {
  const world = new FakeController()
  for (let seq = 1; seq <= count; seq += 1) {
    const priority = (seq % 5) as 0 | 1 | 2 | 3 | 4
    world.commands.submitTask({ ...REQUEST, priority }, () => {})
  }
  for (const task of [...world.open.values()])
    if (isFinal(task.spec.seq)) world.finish(task.spec.id, 'completed')
  return world
}

async function allPages(
  world: FakeController,
  filter: Parameters<typeof listTasks>[1],
  limit: number,
  sort: TaskSort = 'newest',
) {
  const seqs: number[] = []
  let pages = 0
  for (let after: TaskPosition | null = null; pages < 1_000;) {
    const page = await listTasks(world.views, filter, { sort, after, limit }, () => 0)
    seqs.push(...page.items.map((task) => task.seq))
    pages += 1
    if (page.next === null) return { seqs, pages, total: page.total }
    after = readTaskCursor(sort, writeTaskCursor(sort, page.next))
  }
  throw new Error('the pages never end')
}

const newestFirst = (count: number, keep: (seq: number) => boolean = () => true) =>
  Array.from({ length: count }, (_, i) => count - i).filter(keep)

describe('lists of tasks', () => {
  test.each([1, 7, 50, 200])(
    'pages of %i contain every task once, newest first, open and final mixed',
    async (limit) => {
      const world = worldOfTasks(230, (seq) => seq % 3 === 0)
      expect(await allPages(world, { states: statesOf('all') }, limit)).toMatchObject({
        seqs: newestFirst(230),
        total: 230,
      })
    },
  )

  test('only open or only final tasks, and their number', async () => {
    const world = worldOfTasks(100, (seq) => seq <= 40)
    expect(await allPages(world, { states: statesOf('pending') }, 9)).toMatchObject({
      seqs: newestFirst(100, (seq) => seq > 40),
      total: 60,
    })
    expect(await allPages(world, { states: statesOf('completed') }, 9)).toMatchObject({
      seqs: newestFirst(100, (seq) => seq <= 40),
      total: 40,
    })
  })

  test('applies a filter that the store does not know page by page, with an unknown total', async () => {
    const world = worldOfTasks(4_500, (seq) => seq % 100 !== 0)
    world.final.forEach((record, index) =>
      Object.assign(record, { priority: record.seq <= 10 ? 0 : 1 + (index % 4) }),
    )
    const { seqs, total } = await allPages(world, { states: statesOf('completed'), priority: 0 }, 5)
    expect(seqs).toEqual(newestFirst(10))
    expect(total).toBeNull()
  })

  test('Tasks without an owner are listed apart from those of owners, open and final ones', async () => {
    const world = worldOfTasks(40, () => false)
    for (const { spec } of world.open.values()) if (spec.seq % 4 !== 0) Object.assign(spec, { owner: 'ada' })
    for (const task of [...world.open.values()])
      if (task.spec.seq <= 20) world.finish(task.spec.id, 'completed')
    const filter = { states: statesOf('all'), without_owner: true }
    expect(await allPages(world, filter, 3)).toMatchObject({
      seqs: newestFirst(40, (seq) => seq % 4 === 0),
      total: null,
    })
    const open = { states: statesOf('pending'), without_owner: true }
    expect(await allPages(world, open, 3)).toMatchObject({ seqs: [40, 36, 32, 28, 24], total: 5 })
    const all = { states: statesOf('all'), without_owner: false }
    expect(await allPages(world, all, 50)).toMatchObject({ seqs: newestFirst(40), total: 40 })
  })

  test('An owner and no owner exclude each other', async () => {
    const api = await apiClient(new FakeController())
    const refused = await api.send('GET', '/tasks?owner=ada&without_owner=true')
    expect([refused.status, refused.body]).toMatchObject([400, { errors: [{ pointer: '/without_owner' }] }])
    await api.app.close()
  })

  test('a task that ends while the list is read appears once, as stored', async () => {
    const world = worldOfTasks(3, () => false)
    const read = world.views.stored.finishedTasks.bind(world.views.stored)
    world.views.stored.finishedTasks = (query) => {
      const [first] = world.open.keys()
      if (first !== undefined && world.final.length === 0) world.finish(first, 'completed')
      return read(query)
    }
    const page = await listTasks(
      world.views,
      { states: statesOf('all') },
      { sort: 'newest', after: null, limit: 10 },
    )
    expect(page.items.map((task) => [task.seq, task.state])).toEqual([
      [3, 'pending'],
      [2, 'pending'],
      [1, 'completed'],
    ])
  })

  test.each([1, 9, 200])('tasks in pages of %i, oldest first, open and final mixed', async (limit) => {
    const world = worldOfTasks(230, (seq) => seq % 3 === 0)
    expect((await allPages(world, { states: statesOf('all') }, limit, 'oldest')).seqs).toEqual(
      newestFirst(230).reverse(),
    )
    expect(
      (await allPages(world, { states: statesOf('completed'), priority: 0 }, limit, 'oldest')).seqs,
    ).toEqual(newestFirst(230, (seq) => seq % 15 === 0).reverse())
  })

  test.each([
    [3, 300],
    [40, 2_000],
    [200, 2_000],
  ])('open tasks by priority and by name, in pages of %i', async (limit, count) => {
    const world = worldOfTasks(count, () => false)
    for (const task of world.open.values()) task.spec = { ...task.spec, name: `n${task.spec.seq % 7}` }
    const oldest = newestFirst(count).reverse()
    const by = (key: (seq: number) => number) => oldest.toSorted((a, b) => key(a) - key(b) || a - b)
    expect((await allPages(world, { states: statesOf('pending') }, limit, 'priority')).seqs).toEqual(
      by((seq) => seq % 5),
    )
    expect((await allPages(world, { states: statesOf('pending') }, limit, 'name')).seqs).toEqual(
      by((seq) => seq % 7),
    )
  })

  test('an order of open tasks is refused for other tasks, and so is a cursor of another order', async () => {
    const api = await apiClient(worldOfTasks(3, (seq) => seq === 1))
    for (const query of [
      'sort=name',
      'sort=priority&state=completed',
      'sort=priority&state=all',
      'sort=size',
    ]) {
      expect(await api.send('GET', `/tasks?${query}`), query).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/sort' }] },
      })
    }
    const { body } = await api.send('GET', '/tasks?state=pending&sort=name&limit=1')
    expect(
      (await api.send('GET', `/tasks?state=pending&sort=name&cursor=${body.next_cursor}`)).body.items,
    ).toHaveLength(1)
    for (const cursor of [`${body.next_cursor}&sort=priority`, 'x', 'W10', 'bnVsbA']) {
      const answer = await api.send('GET', `/tasks?state=pending&cursor=${cursor}`)
      expect(answer, cursor).toMatchObject({ status: 400, body: { errors: [{ pointer: '/cursor' }] } })
    }
    await api.app.close()
  })

  test('tasks by label, with a given value or with any value', async () => {
    const world = worldOfTasks(6, () => false)
    const labels = [{ team: 'a' }, { team: 'b' }, { team: 'a=b' }, { other: 'a' }, {}, { team: 'a' }]
    ;[...world.open.values()].forEach(
      (task, i) => (task.spec = { ...task.spec, labels: labels[i] as Record<string, string> }),
    )
    for (const id of [...world.open.keys()].slice(0, 2)) world.finish(id, 'completed')
    const found = async (label: string) =>
      (await allPages(world, { states: statesOf('all'), label }, 10)).seqs
    expect(await found('team')).toEqual([6, 3, 2, 1])
    expect(await found('team=a')).toEqual([6, 1])
    expect(await found('team=a=b')).toEqual([3])
    expect(await found('toString')).toEqual([])
  })

  test('tasks by wait reason: every task with that reason, in every order', async () => {
    const world = worldOfTasks(2 * EXPLAINED_TASKS + 50, (seq) => seq === 7)
    const reasons = ['WAITING_VRAM', 'NEVER_FITS'] as const
    const explain = world.views.explain.bind(world.views)
    world.views.explain = (task) => {
      const explanation = explain(task)
      const reason = reasons[task.spec.seq % 2] as (typeof reasons)[number]
      return explanation === null ? null : { ...explanation, primary: { ...explanation.primary, reason } }
    }
    const api = await apiClient(world)
    const wanted = newestFirst(2 * EXPLAINED_TASKS + 50, (seq) => seq % 2 === 1 && seq !== 7)
    for (const [sort, limit] of [
      ['newest', 200],
      ['priority', 200],
      ['oldest', 7],
    ] as const) {
      world.explained = 0
      const { seqs, total, pages } = await allPages(
        world,
        { states: statesOf('pending'), reason: 'NEVER_FITS' },
        limit,
        sort,
      )
      expect(seqs.toSorted((a, b) => b - a)).toEqual(wanted)
      if (sort !== 'priority') expect(sort === 'newest' ? seqs : seqs.toReversed()).toEqual(wanted)
      expect(total).toBeNull()
      expect(world.explained / pages).toBeLessThanOrEqual(EXPLAINED_TASKS + 2 * limit)
    }
    const ofOne = (await api.send('GET', '/tasks?reason=WAITING_VRAM&priority=0&limit=2')).body as TaskPage
    expect(ofOne.items.map(({ seq }) => seq)).toEqual([2 * EXPLAINED_TASKS + 50, 2 * EXPLAINED_TASKS + 40])
    expect(ofOne.total).toBe((2 * EXPLAINED_TASKS + 50) / 10)
    expect((await api.send('GET', '/tasks?state=completed&reason=NEVER_FITS')).body).toMatchObject({
      items: [],
      total: 0,
    })
    expect(await api.send('GET', '/tasks?reason=TIRED')).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/reason' }] },
    })
    await api.app.close()
  })

  test('tasks by wait reason: a page that ran out of time continues where it ended', async () => {
    const world = worldOfTasks(40, () => false)
    const filter = { states: statesOf('pending'), reason: 'WAITING_VRAM' } as const
    let elapsedMs = 0
    const slow = () => (elapsedMs += 40)
    const seqs: number[] = []
    let after: TaskPosition | null = null
    do {
      const page = await listTasks(world.views, filter, { sort: 'newest', after, limit: 50 }, slow)
      expect([page.total, page.items.length < 10]).toEqual([null, true])
      seqs.push(...page.items.map(({ seq }) => seq))
      after = page.next
    } while (after !== null)
    expect(seqs).toEqual(newestFirst(40))
  })

  test.each([3, 200])('open tasks by the GPU time that they did not get, in pages of %i', async (limit) => {
    const world = worldOfTasks(30, () => false)
    const owed = (seq: number) => 1_000_000 * ((seq * 7) % 10)
    world.views.taskCounters = ({ spec: { seq } }) => ({
      ...ZERO_COUNTERS,
      demand: 5_000_000 + owed(seq),
      served: 5_000_000,
      swap: owed(seq),
    })
    const { seqs } = await allPages(world, { states: statesOf('pending') }, limit, 'starved_seconds')
    expect(seqs).toEqual(newestFirst(30).toSorted((a, b) => owed(b) - owed(a) || a - b))
    const api = await apiClient(world)
    const { body } = await api.send('GET', '/tasks?state=pending&sort=starved_seconds&limit=1')
    expect(body.items[0]).toMatchObject({
      seq: 7,
      starved_seconds: 9,
      starvation_percent: { swap: (100 * 9) / 14 },
    })
    expect(await api.send('GET', '/tasks?sort=starved_seconds')).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/sort' }] },
    })
    await api.app.close()
  })

  test('a page ends before it reaches 100 KB, and holds at least one task', async () => {
    const world = worldOfTasks(60, () => false)
    for (const task of world.open.values()) {
      const command = ['x'.repeat(task.spec.seq === 60 ? 200_000 : 10_000)]
      task.spec = { ...task.spec, command }
    }
    const api = await apiClient(world)
    const first = await api.send('GET', '/tasks?limit=200')
    expect(first.body.items).toHaveLength(1)
    const second = await api.send('GET', `/tasks?limit=200&cursor=${first.body.next_cursor}`)
    expect(second.body.items.length).toBeGreaterThan(5)
    expect(JSON.stringify(second.body).length).toBeLessThan(100_000)
    expect(second.body.total).toBe(60)
    await api.app.close()
  })

  test('pages of nodes also hold every node once, in order of registration', async () => {
    const world = new FakeController()
    const ids = Array.from({ length: 90 }, (_, n) => `5f0c9a52-1d3e-4b7a-9c11-${String(n).padStart(12, '0')}`)
    for (const id of ids) await world.addNode({ id, gpus: 8, physicalMib: 40_000 })
    const api = await apiClient(world)
    const seen: string[] = []
    let cursor = ''
    do {
      const { body } = await api.send('GET', `/nodes?limit=1000${cursor}`)
      expect(JSON.stringify(body).length).toBeLessThan(100_000)
      expect(body.total).toBe(90)
      seen.push(...body.items.map(({ node_id }: { node_id: string }) => node_id))
      cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
    } while (cursor !== '')
    expect(seen).toEqual(ids)
    await api.app.close()
  })

  test('tasks by node: those placed there and those that ended there', async () => {
    const world = worldOfTasks(4, (seq) => seq === 4)
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 40_000 })
    const [first] = world.open.keys()
    world.place(String(first), NODE_ID)
    expect(await allPages(world, { states: statesOf('running'), node: NODE_ID }, 10)).toMatchObject({
      seqs: [1],
      total: 1,
    })
    world.finish(String(first), 'completed')
    expect(await allPages(world, { states: statesOf('all'), node: NODE_ID }, 10)).toMatchObject({
      seqs: [1],
      total: null,
    })
  })
})

describe('a placed task', () => {
  test('shows its node and GPUs', async () => {
    const world = worldOfTasks(1, () => false)
    await world.addNode({ id: NODE_ID, gpus: 2, physicalMib: 40_000 })
    const [id] = world.open.keys()
    world.place(String(id), NODE_ID, [1])
    const api = await apiClient(world)
    const { body } = await api.send('GET', `/tasks/${id}`)
    expect(body).toMatchObject({
      state: 'running',
      residency: 'resident',
      max_runtime_seconds: 60,
      wait: null,
      placement: { node_id: NODE_ID, node_name: 'node-1', gpus: [1], demand_mib: 1000, wants_gpu: true },
    })
    const explained = await api.send('GET', `/tasks/${id}/explain`)
    expect(explained.body).toMatchObject({
      waits: false,
      sentence: 'It is running on GPU 1 of node-1, resident.',
    })
    const node = await api.send('GET', `/nodes/${NODE_ID}`)
    expect(node.body.gpus[1]).toMatchObject({
      task_ids: [id],
      vram: { committed_mib: 1000, resident_mib: 1000 },
    })
    await api.app.close()
  })

  test.each([
    [
      { residency: 'swapped_out', wantsGpu: false },
      'It is swapped out on GPU 0 of node-1 and does not want the GPU.',
    ],
    [{ residency: 'none' }, 'It is running on GPU 0 of node-1, not started yet.'],
    [{ residency: 'swapping_in' }, 'It is running on GPU 0 of node-1, swapping in.'],
  ] as const)('%j is explained in one sentence', async (over, sentence) => {
    const world = worldOfTasks(1, () => false)
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 40_000 })
    const [id] = world.open.keys()
    world.place(String(id), NODE_ID, [0], over)
    const api = await apiClient(world)
    expect((await api.send('GET', `/tasks/${id}/explain`)).body.sentence).toBe(sentence)
    await api.app.close()
  })
})

describe('a final task', () => {
  test('shows its end reason and its counters', async () => {
    const world = worldOfTasks(1, () => false)
    const [id] = world.open.keys()
    world.finish(String(id), 'failed', 'exit code 137')
    const api = await apiClient(world)
    const { body } = await api.send('GET', `/tasks/${id}`)
    expect(body).toMatchObject({
      state: 'failed',
      end_reason: 'exit code 137',
      placement: null,
      starvation_percent: { total: 40, queue: 30, swap: 10 },
    })
    expect((await api.send('GET', `/tasks/${id}/explain`)).body.sentence).toBe('It is failed: exit code 137.')
    await api.app.close()
  })
})

describe('GET /events', () => {
  test('continues after a number, oldest first, by task or node', async () => {
    const world = new FakeController()
    for (let i = 0; i < 5; i += 1)
      world.addEvent('task_submitted', {
        taskId: i % 2 === 0 ? 'even' : 'odd',
        data: { n: i, deep: { list: [1, null] } },
      })
    world.addEvent('node_registered', { nodeId: NODE_ID, causedBy: 1 })
    const api = await apiClient(world)
    const first = (await api.send('GET', '/events?limit=2')).body
    expect(first).toMatchObject({
      next_after: 2,
      items: [{ seq: 1, kind: 'task_submitted', data: { n: 0, deep: { list: [1, null] } } }, { seq: 2 }],
    })
    expect((await api.send('GET', '/events?after=5')).body).toMatchObject({
      next_after: 6,
      items: [{ node_id: NODE_ID, caused_by: 1, task_id: null }],
    })
    expect((await api.send('GET', '/events?after=6')).body).toMatchObject({
      items: [],
      next_after: 6,
      last_seq: 6,
    })
    expect(
      (await api.send('GET', '/events?task=odd')).body.items.map((event: { seq: number }) => event.seq),
    ).toEqual([2, 4])
    expect((await api.send('GET', `/events?node=${NODE_ID}`)).body.items).toHaveLength(1)
    await api.app.close()
  })
})
