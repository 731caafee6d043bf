import { Compile } from 'typebox/schema'
import { expect, test } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { TaskRequestSchema } from '../../controller/api/tasks/schema.ts'
import type { Batch, Store } from '../../controller/ports/store.ts'
import { decode, encode } from '../../protocol/codec.ts'
import type { SubmitTask, TaskAnswer } from '../../protocol/client-messages.ts'
import type { Body } from '../../protocol/envelope.ts'
import { aHeartbeat } from '../support/bus-contract.ts'
import { aSubmission, clientWorld } from '../support/client-world.ts'
import type { ClientWorld } from '../support/client-world.ts'
import { envelopeOf } from '../support/envelopes.ts'

const LAB = 'gpu.v1.client.lab'
const NODE = 'n1'

const taskIn = (body: Body): TaskAnswer => {
  if (body.op !== 'task') throw new Error(`no task but ${JSON.stringify(body)}`)
  return body
}
const submit = async (
  world: ClientWorld,
  changes: Partial<SubmitTask> = {},
  id?: string,
): Promise<TaskAnswer> => taskIn(await world.ask(`${LAB}.submit`, aSubmission(changes), id))

async function withNode(world: ClientWorld): Promise<void> {
  world.bus.subscribe(`gpu.v1.node.${NODE}.command`, (message, _subject, reply) => {
    const { body } = message
    if (!('task_id' in body) || !('attempt' in body)) return
    const { task_id, attempt } = body
    reply(
      envelopeOf({
        op: 'result',
        task_id,
        attempt,
        outcome: 'accepted',
        reason: null,
        residency: 'none',
        generation: 0,
      }),
    )
  })
  const { gpus, tasks, finished_unacked } = aHeartbeat(NODE)
  const more = {
    name: NODE,
    address: '',
    host_swap_mib: 100_000,
    signals_wanted: true,
    device: 'process',
    allow_exec: true,
  } as const
  await world.ask(`gpu.v1.node.${NODE}.hello`, {
    op: 'hello',
    node_id: NODE,
    gpus,
    tasks,
    finished_unacked,
    ...more,
  })
}

test('A client submits a task, reads its state, and cancels it', async () => {
  const world = await clientWorld()
  const labels = [{ name: 'team', value: 'vision' }]
  const asked = await submit(world, {
    name: 'train',
    labels,
    priority: 0,
    command: ['true'],
    max_runtime_seconds: 60,
  })
  expect(asked).toMatchObject({
    name: 'train',
    state: 'pending',
    node_id: null,
    gpus: [],
    reason: expect.any(String) as string,
  })
  const { spec } = world.controller.views.openTask(asked.task_id) ?? {}
  expect(spec).toMatchObject({
    owner: 'nats:lab',
    labels: { team: 'vision' },
    priority: 0,
    command: ['true'],
    maxRuntimeMs: 60_000,
  })
  await withNode(world)
  const { task_id } = asked
  expect(await world.ask(`${LAB}.get`, { op: 'get', task_id })).toMatchObject({
    state: 'assigned',
    node_id: NODE,
    gpus: [0],
    attempt: 1,
  })
  const waiting = await submit(world, { vram_mib: 20_000 })
  expect(waiting).toMatchObject({ state: 'pending' })
  const cancelled = { state: 'cancelled', reason: 'cancelled by client lab' }
  expect(await world.ask(`${LAB}.cancel`, { op: 'cancel', task_id: waiting.task_id })).toMatchObject(
    cancelled,
  )
  expect(await world.ask(`${LAB}.get`, { op: 'get', task_id: waiting.task_id })).toMatchObject(cancelled)
  expect(await world.ask(`${LAB}.cancel`, { op: 'cancel', task_id: waiting.task_id }), 'again').toMatchObject(
    cancelled,
  )
})

test('A lease lasts while its client sends keepalives, and a task with a command needs none', async () => {
  const world = await clientWorld()
  const { task_id } = await submit(world)
  await world.pass(50_000)
  const kept = await world.ask(`${LAB}.keepalive`, { op: 'keepalive', task_id, busy: true })
  expect(kept).toMatchObject({ op: 'task', task_id, expires_in_ms: 60_000 })
  await world.pass(50_000)
  expect(await world.ask(`${LAB}.get`, { op: 'get', task_id })).toMatchObject({
    state: 'pending',
    expires_in_ms: null,
  })
  await world.pass(20_000)
  expect(await world.ask(`${LAB}.get`, { op: 'get', task_id })).toMatchObject({
    state: 'cancelled',
    reason: 'lease_expired',
  })
  const other = await submit(world, { command: ['true'] })
  const refused = await world.ask(`${LAB}.keepalive`, { op: 'keepalive', task_id: other.task_id, busy: true })
  expect(refused).toMatchObject({
    op: 'refused',
    reason: expect.stringMatching(/^conflict: .* runs a command/) as string,
  })
})

test('Tasks of other clients are invisible: requests for them are answered like unknown ids', async () => {
  const world = await clientWorld()
  const { task_id } = await submit(world)
  const ended = await submit(world)
  await world.ask(`${LAB}.cancel`, { op: 'cancel', task_id: ended.task_id })
  for (const id of [task_id, ended.task_id, 'nowhere']) {
    for (const body of [{ op: 'get' }, { op: 'cancel' }, { op: 'keepalive', busy: true }] as const) {
      const answer = await world.ask(`gpu.v1.client.other.${body.op}`, { ...body, task_id: id } as Body)
      expect(answer).toEqual({ op: 'refused', reason: 'not_found' })
    }
  }
  expect(world.controller.views.openTask(task_id)?.state).toBe('pending')
})

test('An equal message id means the same task at any time, and is refused for another request', async () => {
  const world = await clientWorld()
  const [first, second] = await Promise.all([submit(world, {}, 'm-1'), submit(world, {}, 'm-1')])
  expect(second.task_id).toBe(first.task_id)
  expect(await submit(world, {}, 'm-1')).toMatchObject({ task_id: first.task_id, state: 'pending' })
  const conflict = { op: 'refused', reason: 'conflict: this message id was used for another task' }
  expect(await world.ask(`${LAB}.submit`, aSubmission({ gpu_count: 2 }), 'm-1')).toEqual(conflict)
  await world.ask(`${LAB}.cancel`, { op: 'cancel', task_id: first.task_id })
  expect(await submit(world, {}, 'm-1')).toMatchObject({ task_id: first.task_id, state: 'cancelled' })
  expect(await world.ask(`${LAB}.submit`, aSubmission({ command: ['x'] }), 'm-1')).toEqual(conflict)
  expect(world.controller.views.counts()).toMatchObject({ pending: 0, cancelled: 1 })
  const elsewhere = await world.ask('gpu.v1.client.other.submit', aSubmission(), 'm-1')
  expect(taskIn(elsewhere).task_id).not.toBe(first.task_id)
})

test('A submission is acknowledged only when it is durable, and a store failure is reported', async () => {
  const commits: ((fault?: Error) => void)[] = []
  let isSlow = false
  const inner = createMemoryStore()
  const slow: Store = {
    load: () => inner.load(),
    close: () => inner.close(),
    reads: inner.reads,
    commit: (batch: Batch) => {
      if (!isSlow) return inner.commit(batch)
      return new Promise<void>((resolve, reject) => {
        commits.push((fault) =>
          fault === undefined ? void Promise.resolve(inner.commit(batch)).then(resolve) : reject(fault),
        )
      })
    },
  }
  const world = await clientWorld({}, slow)
  isSlow = true
  const answers: string[] = []
  for (const who of ['first', 'again']) {
    world.bus.request(`${LAB}.submit`, envelopeOf(aSubmission(), 'm-1'), 60_000, (outcome) => {
      answers.push(`${who} ${outcome.answered ? outcome.answer.body.op : outcome.why}`)
    })
    await world.pass(100)
  }
  expect(answers).toEqual([])
  commits.splice(0).forEach((commit) => commit())
  await world.pass(100)
  expect(answers).toEqual(['first task', 'again task'])
  world.bus.request(`${LAB}.submit`, envelopeOf(aSubmission()), 60_000, (outcome) => {
    answers.push(outcome.answered ? JSON.stringify(outcome.answer.body) : outcome.why)
  })
  await world.pass(100)
  commits.splice(0).forEach((commit) => commit(new Error('disk full\nsorry')))
  await world.pass(100)
  expect(answers.at(-1)).toBe('{"op":"refused","reason":"commit_unknown: disk full sorry"}')
})

test('A message on the wrong subject is refused and audited', async () => {
  const audit: unknown[] = []
  const world = await clientWorld({ onRefused: (...told) => audit.push(told) })
  const refused = { op: 'refused', reason: 'wrong_subject' }
  expect(await world.ask(`${LAB}.get`, { op: 'cancel', task_id: 'x' })).toEqual(refused)
  expect(await world.ask(`${LAB}.submit`, aHeartbeat('n1'))).toEqual(refused)
  expect(audit).toEqual([
    ['lab', 'wrong_subject'],
    ['lab', 'wrong_subject'],
  ])
  expect(world.controller.messages.refused.wrong_subject).toBe(2)
  await world.controller.stop()
  await expect(world.ask(`${LAB}.get`, { op: 'get', task_id: 'x' })).rejects.toThrow('no_responder')
})

const long = (length: number): string => 'x'.repeat(length)
const many = (count: number): string[] => Array.from({ length: count }, (_, n) => `g${n}`)

test.each<Partial<SubmitTask>>([
  {},
  { name: long(200) },
  { name: long(201) },
  { name: '' },
  { name: 'a\nb' },
  { vram_mib: 0 },
  { vram_mib: 16_777_216 },
  { vram_mib: 16_777_217 },
  { vram_mib: 1.5 },
  { vram_mib: null },
  { vram_mib: null, gpu_mode: 'exclusive' },
  { gpu_count: 0 },
  { gpu_count: 1024 },
  { gpu_count: 1025 },
  { gpu_mode: 'mine' as never },
  { noswap: 2 as never },
  { priority: 5 as never },
  { groups: many(32) },
  { groups: many(33) },
  { groups: ['a', 'a'] },
  { groups: [' a'] },
  { groups: ['a/b'] },
  { groups: ['Größe 1.b'] },
  { labels: many(64).map((name) => ({ name, value: long(256) })) },
  { labels: many(65).map((name) => ({ name, value: '' })) },
  { labels: [{ name: long(65), value: '' }] },
  { labels: [{ name: '', value: '' }] },
  { labels: [{ name: 'a', value: long(257) }] },
  { command: [] },
  { command: ['sh', '-c', ''] },
  { command: ['a\0b'] },
  { command: [long(4097)] },
  { command: many(257) },
  { max_runtime_seconds: 0 },
  { max_runtime_seconds: 31_536_000 },
  { max_runtime_seconds: 31_536_001 },
  { on_node_loss: 'hope' as never },
  { image: 'busybox' },
  { image: 'registry.example:5000/team/train:v2', command: ['train'] },
  { image: '--privileged', command: ['train'] },
  { image: long(512), command: ['train'] },
  { image: long(513), command: ['train'] },
  { image: null },
])('%j is accepted over the bus exactly when REST accepts it', async (changes) => {
  const { op: _, labels, name, vram_mib, command, ...rest } = aSubmission(changes)
  const optional = { name, vram_mib, command }
  const given = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null))
  const rest_ = {
    ...rest,
    ...given,
    labels: Object.fromEntries(labels.map((label) => [label.name, label.value])),
  }
  const isInRest =
    Compile(TaskRequestSchema).Check(rest_) &&
    (vram_mib !== null || rest.gpu_mode === 'exclusive') &&
    (command !== null || (rest.image ?? null) === null)
  const decoded = decode(encode(envelopeOf(aSubmission(changes))))
  const world = await clientWorld()
  const isOverBus = decoded.ok && (await world.ask(`${LAB}.submit`, aSubmission(changes))).op === 'task'
  expect(isOverBus).toBe(isInRest)
})

test('After a failed commit a repeated submission gets no answer: its task is not stored', async () => {
  const store = createMemoryStore()
  let isLost = false
  const commit = (batch: Batch) =>
    isLost ? Promise.reject(new Error('another one leads')) : store.commit(batch)
  const world = await clientWorld({}, { ...store, commit })
  isLost = true
  const answers: Body[] = []
  const send = async () => {
    world.bus.request(`${LAB}.submit`, envelopeOf(aSubmission(), 'once'), 5_000, (outcome) => {
      if (outcome.answered) answers.push(outcome.answer.body)
    })
    await world.pass(6_000)
  }
  await send()
  expect(answers).toMatchObject([{ op: 'refused' }])
  await send()
  expect(answers).toHaveLength(1)
})
