/**
 * The promises of the API for any engine: `apiContract('the real engine', makeWorld)` runs all tests. Tasks
 * need more VRAM than any GPU has, so that they stay pending in every world.
 */
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { apiClient, type ApiAnswer, type ApiClient } from './api-client.ts'
import type { ApiWorld } from './api-world.ts'

export interface ApiContractWorld extends ApiWorld {
  close?(): Promise<void>
}

const NODE = '5f0c9a52-1d3e-4b7a-9c11-0000000000aa'
const OTHER_NODE = '5f0c9a52-1d3e-4b7a-9c11-0000000000bb'
/** In MiB; more than any GPU has. */
const TOO_LARGE = 16_000_000

export function apiContract(name: string, makeWorld: () => Promise<ApiContractWorld>): void {
  describe(`The API of ${name}`, () => {
    let world: ApiContractWorld
    let api: ApiClient

    async function open(): Promise<void> {
      world = await makeWorld()
      await world.addNode({ id: NODE, gpus: 2, physicalMib: 49_140 })
      await world.addNode({ id: OTHER_NODE, gpus: 1, physicalMib: 49_140 })
      api = await apiClient(world)
    }
    async function close(): Promise<void> {
      await api.app.close()
      await world.close?.()
    }

    const submit = async (over: object = {}) =>
      (await api.send('POST', '/tasks', { vram_mib: TOO_LARGE, ...over })).body

    describe('the three calls of the specification', () => {
      beforeEach(open)
      afterEach(close)

      test('GET /config returns the default of the environment until a PUT', async () => {
        const before = await api.send('GET', '/config')
        expect(before).toMatchObject({
          status: 200,
          body: { default_vram_overcommit_percent: 0, source: 'environment', revision: 0 },
        })
        const put = await api.send('PUT', '/config', { default_vram_overcommit_percent: 20 })
        expect(put).toMatchObject({
          status: 200,
          body: { default_vram_overcommit_percent: 20, source: 'persisted', revision: 1 },
        })
        expect(put.body).toEqual({
          ...(await api.send('GET', '/config')).body,
          over: { gpus: 0, over_committed_mib: 0, reserve_deficit_mib: 0 },
        })
      })

      test.each([0, 1000, '20.0', '2e1'])('PUT /config accepts %s', async (value) => {
        const put = await api.send('PUT', '/config', `{"default_vram_overcommit_percent": ${value}}`)
        expect(put).toMatchObject({ status: 200, body: { default_vram_overcommit_percent: Number(value) } })
      })

      test('PUT /nodes/{node_id}/config overrides; 0 disables, and null or omission clears', async () => {
        await api.send('PUT', '/config', { default_vram_overcommit_percent: 50 })
        const put = (body: object) => api.send('PUT', `/nodes/${NODE}/config`, body)
        const own = (percent: number) => ({
          override_percent: percent,
          effective_percent: percent,
          source: 'node',
        })
        const global = { override_percent: null, effective_percent: 50, source: 'global' }
        expect((await put({ overcommit_vram_percent: 20 })).body).toMatchObject({
          overcommit_vram_percent: 20,
          overcommit: own(20),
        })
        expect((await put({ overcommit_vram_percent: null })).body).toMatchObject({
          overcommit_vram_percent: null,
          overcommit: global,
        })
        expect((await put({ overcommit_vram_percent: 0 })).body).toMatchObject({
          overcommit_vram_percent: 0,
          overcommit: own(0),
        })
        expect((await put({})).body).toMatchObject({ overcommit_vram_percent: null, overcommit: global })
      })

      test('a node keeps its reserve if the field is omitted, and null clears it', async () => {
        const put = (body: object) => api.send('PUT', `/nodes/${NODE}/config`, body)
        expect((await put({ safety_reserve_mib: 4096 })).body).toMatchObject({
          safety_reserve_mib: 4096,
          reserve: { effective_mib: 4096 },
        })
        expect((await put({ overcommit_vram_percent: 10 })).body.safety_reserve_mib).toBe(4096)
        expect((await put({ safety_reserve_mib: null })).body).toMatchObject({
          safety_reserve_mib: null,
          reserve: { effective_mib: 2048 },
        })
      })

      test('If-Match is honoured and never required', async () => {
        const { headers } = await api.send('GET', '/config')
        const stale = { 'if-match': String(headers['etag']) }
        expect((await api.send('PUT', '/config', { max_tasks_per_gpu: 8 }, stale)).status).toBe(200)
        const second = await api.send('PUT', '/config', { max_tasks_per_gpu: 9 }, stale)
        expect(second).toMatchObject({ status: 412, body: { code: 'precondition_failed' } })
        expect((await api.send('PUT', '/config', { max_tasks_per_gpu: 9 }, { 'if-match': '*' })).status).toBe(
          200,
        )
        expect((await api.send('PUT', '/config', { max_tasks_per_gpu: 10 })).status).toBe(200)
      })

      test('of two writes based on the same state, one is refused', async () => {
        const { headers } = await api.send('GET', `/nodes/${NODE}`)
        const match = { 'if-match': String(headers['etag']) }
        const both = await Promise.all(
          [10, 20].map((value) =>
            api.send('PUT', `/nodes/${NODE}/config`, { overcommit_vram_percent: value }, match),
          ),
        )
        expect(both.map((answer) => answer.status).sort((a, b) => a - b)).toEqual([200, 412])
      })
    })

    describe('nodes', () => {
      beforeEach(open)
      afterEach(close)

      test('are listed in order of registration, page by page', async () => {
        const first = await api.send('GET', '/nodes?limit=1')
        expect(first.body).toMatchObject({
          total: 2,
          items: [{ node_id: NODE, status: 'up', gpus: [{ index: 0 }, { index: 1 }] }],
        })
        const second = await api.send('GET', `/nodes?limit=1&cursor=${first.body.next_cursor}`)
        expect(second.body).toMatchObject({ next_cursor: null, items: [{ node_id: OTHER_NODE }] })
      })

      test('show the VRAM of their GPUs as sums', async () => {
        await api.send('PUT', `/nodes/${NODE}/config`, { overcommit_vram_percent: 15 })
        const { body } = await api.send('GET', `/nodes/${NODE}`)
        expect(body.gpus[0].vram).toMatchObject({ physical_mib: 49_140, effective_schedulable_mib: 56_511 })
        expect(body.vram).toMatchObject({ physical_mib: 98_280, effective_schedulable_mib: 113_022 })
      })

      test('are cordoned and uncordoned', async () => {
        expect((await api.send('POST', `/nodes/${NODE}/cordon`)).body.cordoned).toBe(true)
        expect((await api.send('POST', `/nodes/${NODE}/uncordon`, {})).body.cordoned).toBe(false)
      })
    })

    describe('tasks', () => {
      beforeEach(open)
      afterEach(close)

      test('POST /tasks answers 201 with the location of the task, and its defaults', async () => {
        const answer = await api.send('POST', '/tasks', { vram_mib: TOO_LARGE })
        expect(answer.status).toBe(201)
        expect(answer.headers['location']).toBe(`/api/v1/tasks/${answer.body.id}`)
        const defaults = {
          gpu_count: 1,
          gpu_mode: 'shared',
          noswap: 0,
          priority: 2,
          groups: [],
          labels: {},
          owner: null,
          command: null,
          image: null,
          mounts: [],
          memory_mib: null,
          cpus: null,
          pids_limit: null,
          vram_limit_mib: null,
        }
        expect(answer.body).toMatchObject({
          state: 'pending',
          residency: 'none',
          vram_mib: TOO_LARGE,
          on_node_loss: 'wait',
          ...defaults,
        })
        expect((await api.send('GET', `/tasks/${answer.body.id}`)).body).toEqual(answer.body)
      })

      test('a pending task has a wait reason', async () => {
        const task = await submit()
        expect(task.wait).toMatchObject({ reason: expect.any(String), sentence: expect.any(String) })
        const { body } = await api.send('GET', `/tasks/${task.id}/explain`)
        expect(body).toMatchObject({
          task_id: task.id,
          waits: true,
          sentence: task.wait.sentence,
          placement: null,
        })
      })

      test('vram_mib may be missing only in an exclusive task', async () => {
        expect(await api.send('POST', '/tasks', {})).toMatchObject({
          status: 400,
          body: { errors: [{ pointer: '/vram_mib' }] },
        })
        expect(await api.send('POST', '/tasks', { gpu_mode: 'exclusive', gpu_count: 16 })).toMatchObject({
          status: 201,
          body: { vram_mib: null },
        })
      })

      test('a task of a container image says so, and its image never changes', async () => {
        const image = 'registry.example:5000/team/train:v2'
        const { id } = await submit({ command: ['train'], image })
        expect((await api.send('GET', `/tasks/${id}`)).body).toMatchObject({ command: ['train'], image })
        const answer = await api.send('PATCH', `/tasks/${id}`, { image: 'busybox' })
        expectRefusal(answer, '/image')
        expect((await api.send('GET', `/tasks/${id}`)).body.image).toBe(image)
      })

      test('limits of a task need a command, are returned, and never change', async () => {
        const limits = { memory_mib: 512, cpus: 2, pids_limit: 100, vram_limit_mib: TOO_LARGE }
        const mounts = ['datasets', 'scratch']
        const { id } = await submit({ command: ['train'], mounts, ...limits })
        expect((await api.send('GET', `/tasks/${id}`)).body).toMatchObject({ mounts, ...limits })
        for (const field of Object.keys(limits))
          expectRefusal(await api.send('PATCH', `/tasks/${id}`, { [field]: 200 }), `/${field}`)
        const other = await submit({ command: ['train'] })
        expect(other).toMatchObject({ memory_mib: null, cpus: null, pids_limit: null, vram_limit_mib: null })
      })

      test('a limit of VRAM is at least the demand, also after a change of the demand', async () => {
        const body = { command: ['train'], vram_mib: 300_000 }
        expectRefusal(
          await api.send('POST', '/tasks', { ...body, vram_limit_mib: 299_999 }),
          '/vram_limit_mib',
        )
        const { id } = await submit({ ...body, vram_limit_mib: 300_000 })
        expectRefusal(await api.send('PATCH', `/tasks/${id}`, { vram_mib: 300_001 }), '/vram_mib')
        expect((await api.send('GET', `/tasks/${id}`)).body).toMatchObject({ vram_mib: 300_000 })
      })

      test('PATCH is a merge patch', async () => {
        const { id } = await submit({ labels: { team: 'a', run: '1' }, groups: ['training'] })
        const patch = async (body: object) => (await api.send('PATCH', `/tasks/${id}`, body)).body
        const mergePatch = { 'content-type': 'application/merge-patch+json' }
        expect((await api.send('PATCH', `/tasks/${id}`, { priority: 0 }, mergePatch)).body.priority).toBe(0)
        expect((await patch({ labels: { run: null, step: '2' } })).labels).toEqual({ team: 'a', step: '2' })
        expect(await patch({ labels: null, groups: null, noswap: 1 })).toMatchObject({
          labels: {},
          groups: [],
          noswap: 1,
          priority: 0,
        })
      })

      test('DELETE cancels, and has no effect on a final task', async () => {
        const { id } = await submit()
        expect(await api.send('DELETE', `/tasks/${id}`)).toMatchObject({
          status: 202,
          body: { state: 'cancelled', placement: null },
        })
        expect((await api.send('GET', `/tasks/${id}`)).body).toMatchObject({
          state: 'cancelled',
          finished_at: expect.any(String),
          wait: null,
        })
        expect(await api.send('DELETE', `/tasks/${id}`)).toMatchObject({
          status: 409,
          body: { code: 'conflict' },
        })
        expect((await api.send('PATCH', `/tasks/${id}`, { noswap: 1 })).status).toBe(409)
      })

      test('GET /tasks lists open and final tasks together, newest first, with complete pages', async () => {
        const ids: string[] = []
        for (let i = 0; i < 7; i += 1) ids.unshift((await submit({ name: `task ${i}` })).id)
        for (const id of [ids[1], ids[4]]) await api.send('DELETE', `/tasks/${id}`)
        const seen: string[] = []
        for (let cursor: string | null = ''; cursor !== null;) {
          const { body } = await api.send('GET', `/tasks?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
          expect(body.total).toBe(7)
          seen.push(...body.items.map((task: { id: string }) => task.id))
          cursor = body.next_cursor
        }
        expect(seen).toEqual(ids)
      })

      test('GET /tasks filters by list, priority, group and name', async () => {
        const a = await submit({ name: 'alpha', priority: 0, groups: ['g1'] })
        const b = await submit({ name: 'beta', priority: 1 })
        const c = await submit({ name: 'alphabet', priority: 0 })
        await api.send('DELETE', `/tasks/${c.id}`)
        const idsOf = async (query: string) =>
          (await api.send('GET', `/tasks?${query}`)).body.items.map((task: { id: string }) => task.id)
        expect(await idsOf('state=pending')).toEqual([b.id, a.id])
        expect(await idsOf('state=completed')).toEqual([c.id])
        expect(await idsOf('state=lost')).toEqual([])
        expect(await idsOf('priority=0')).toEqual([c.id, a.id])
        expect(await idsOf('q=alpha')).toEqual([c.id, a.id])
        expect(await idsOf('group=g1&state=all')).toEqual([a.id])
        expect(await idsOf(`node=${NODE}`)).toEqual([])
      })
    })

    describe('groups', () => {
      beforeEach(open)
      afterEach(close)

      test('are created, replaced, read and deleted', async () => {
        const made = await api.send('POST', '/groups', { id: 'team a', description: 'ours' })
        expect(made).toMatchObject({ status: 201, body: { id: 'team a', description: 'ours', node_ids: [] } })
        expect(made.headers['location']).toBe('/api/v1/groups/team%20a')
        expect(await api.send('POST', '/groups', { id: 'team a' })).toMatchObject({
          status: 409,
          body: { code: 'conflict' },
        })
        const replaced = await api.send('PUT', '/groups/team%20a', { node_ids: [OTHER_NODE, NODE] })
        expect(replaced).toMatchObject({
          status: 200,
          body: { id: 'team a', description: '', node_ids: [NODE, OTHER_NODE] },
        })
        expect((await api.send('PUT', '/groups/b', { node_ids: [] })).status).toBe(201)
        expect(
          (await api.send('GET', '/groups')).body.items.map((group: { id: string }) => group.id),
        ).toEqual(['b', 'team a'])
        expect((await api.send('DELETE', '/groups/team%20a')).status).toBe(204)
        expect((await api.send('GET', '/groups/team%20a')).status).toBe(404)
      })

      test('contain only registered nodes: unknown ones are named, and nothing changes', async () => {
        const unknown = '00000000-0000-4000-8000-000000000000'
        expect(await api.send('POST', '/groups', { id: 'g', node_ids: [NODE, unknown] })).toMatchObject({
          status: 400,
          body: { code: 'invalid_request', errors: [{ pointer: '/node_ids/1' }] },
        })
        for (const query of ['', '?dry_run=true']) {
          expect((await api.send('PUT', `/groups/g${query}`, { node_ids: ['nope'] })).body).toMatchObject({
            errors: [{ pointer: '/node_ids/0' }],
          })
        }
        expect((await api.send('GET', '/groups/g')).status).toBe(404)
      })

      test('gain and lose nodes one by one', async () => {
        await api.send('POST', '/groups', { id: 'g' })
        expect(await api.send('PUT', `/groups/g/nodes/${NODE}`)).toMatchObject({
          status: 200,
          body: { node_ids: [NODE] },
        })
        expect((await api.send('PUT', `/groups/g/nodes/${NODE}`)).status).toBe(200)
        expect((await api.send('DELETE', `/groups/g/nodes/${NODE}`)).status).toBe(204)
        expect((await api.send('GET', '/groups/g')).body.node_ids).toEqual([])
        expect((await api.send('DELETE', `/groups/g/nodes/${NODE}`)).status).toBe(404)
      })

      test('that pending tasks target are deleted only by force', async () => {
        await api.send('POST', '/groups', { id: 'g' })
        await submit({ groups: ['g'] })
        expect((await api.send('DELETE', '/groups/g')).status).toBe(409)
        expect((await api.send('DELETE', '/groups/g?force=true')).status).toBe(204)
      })
    })

    describe('a missing object', () => {
      // Nothing changes, so one world is enough.
      beforeAll(open)
      afterAll(close)

      test.each([
        ['GET', '/nodes/nowhere', undefined],
        ['PUT', '/nodes/nowhere/config', {}],
        ['POST', '/nodes/nowhere/cordon', undefined],
        ['GET', '/tasks/nowhere', undefined],
        ['GET', '/tasks/nowhere/explain', undefined],
        ['PATCH', '/tasks/nowhere', { noswap: 1 }],
        ['DELETE', '/tasks/nowhere', undefined],
        ['GET', '/groups/nowhere', undefined],
        ['DELETE', '/groups/nowhere', undefined],
        ['PUT', `/groups/nowhere/nodes/${NODE}`, undefined],
      ] as const)('is answered by %s %s with 404 and its name', async (method, path, body) => {
        const answer = await api.send(method, path, body)
        expect(answer).toMatchObject({
          status: 404,
          body: { code: 'not_found', detail: expect.stringContaining('"nowhere"') },
        })
      })
    })

    describe('an invalid request', () => {
      // Nothing changes, so one world is enough.
      beforeAll(open)
      afterAll(close)

      const BAD_PERCENT = ['-1', '1001', '1.5', '"20"', 'true', '[]', '{}', '1e400', '-0.5', '""']

      test.each([...BAD_PERCENT, 'null'])(
        'with default_vram_overcommit_percent: %s is answered with 400 and names the field',
        async (value) => {
          const before = world.snapshot()
          const answer = await api.send('PUT', '/config', `{"default_vram_overcommit_percent": ${value}}`)
          expectRefusal(answer, '/default_vram_overcommit_percent')
          expect(answer.body.detail).toContain('an integer from 0 to 1000')
          expect(world.snapshot()).toBe(before)
        },
      )

      test.each(BAD_PERCENT)(
        'with overcommit_vram_percent: %s is answered with 400 and names the field',
        async (value) => {
          const before = world.snapshot()
          const answer = await api.send(
            'PUT',
            `/nodes/${NODE}/config`,
            `{"overcommit_vram_percent": ${value}}`,
          )
          expectRefusal(answer, '/overcommit_vram_percent')
          expect(answer.body.detail).toContain('an integer from 0 to 1000, or null')
          expect(answer.body.detail).not.toContain('got null')
          expect(world.snapshot()).toBe(before)
        },
      )

      test.each([
        ['noswap', true],
        ['noswap', 2],
        ['noswap', '0'],
        ['noswap', null],
        ['priority', 5],
        ['priority', 'P0'],
        ['vram_mib', 0],
        ['vram_mib', 16_777_217],
        ['gpu_count', 1025],
        ['gpu_mode', 'half'],
        ['name', ''],
        ['name', 'x'.repeat(201)],
        ['name', 'two\nlines'],
        ['command', []],
        ['command', 'sh'],
        ['command/0', ['x'.repeat(4097)]],
        ['command/0', ['', 'x']],
        ['command/1', ['sh', 5]],
        ['command', Array.from({ length: 257 }, () => 'x')],
        ['groups', Array.from({ length: 33 }, (_, i) => `g${i}`)],
        ['groups/0', ['../etc']],
        ['labels', Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, '']))],
        ['labels', { ['k'.repeat(65)]: '' }],
        ['labels/k', { k: 'v'.repeat(257) }],
        ['labels/k', { k: null }],
        ['max_runtime_seconds', 0],
        ['on_node_loss', 'panic'],
        ['image', ''],
        ['image', '--privileged'],
        ['image', 'https://registry.example/a'],
        ['image', 'a'.repeat(513)],
        // Without a command it would be a lease, which runs nothing.
        ['image', 'busybox'],
        ['mounts', 'datasets'],
        ['mounts/0', ['a', 'a']],
        ['mounts', Array.from({ length: 9 }, (_, i) => `m${i}`)],
        ['mounts/0', ['../etc']],
        ['mounts/0', ['/srv']],
        ['mounts/0', ['x'.repeat(33)]],
        ['memory_mib', 15],
        ['memory_mib', '16Gi'],
        ['cpus', 0],
        ['cpus', 1.5],
        ['pids_limit', 15],
        // Without a command too.
        ['memory_mib', 512],
        ['mounts', ['datasets']],
        ['cpus', 1],
        ['pids_limit', 100],
        ['vram_limit_mib', 0],
        ['vram_limit_mib', 100_000],
        ['owner', 'me'],
        ['id', 'mine'],
      ])('with a bad %s of a task is answered with 400', async (pointer, value) => {
        const field = pointer.split('/')[0] as string
        const before = world.snapshot()
        expectRefusal(await api.send('POST', '/tasks', { vram_mib: 1, [field]: value }), `/${pointer}`)
        expect(world.snapshot()).toBe(before)
      })

      test('with labels over the limits after a merge is refused', async () => {
        const labels = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`k${i}`, '']))
        const { id } = await submit({ labels })
        expectRefusal(await api.send('PATCH', `/tasks/${id}`, { labels: { one: 'more' } }), '/labels')
        expect((await api.send('PATCH', `/tasks/${id}`, { labels: { one: 'more', k0: null } })).status).toBe(
          200,
        )
      })

      test.each(['/config', `/nodes/${NODE}/config`])(
        'with an unknown field of %s is answered with 400 and its name',
        async (path) => {
          expectRefusal(await api.send('PUT', path, { surprise: 1 }), '/surprise')
        },
      )

      test('with an empty change of the configuration is answered with 400', async () => {
        expectRefusal(await api.send('PUT', '/config', {}), '')
      })

      test(
        'to a write route is answered with 4xx as a problem, and changes nothing',
        { timeout: 120_000 },
        async () => {
          const { id } = await submit()
          await api.send('POST', '/groups', { id: 'g' })
          const before = world.snapshot()
          const routes = fc.constantFrom<(readonly ['PUT' | 'POST' | 'PATCH', string])[]>(
            ['PUT', '/config'],
            ['PUT', `/nodes/${NODE}/config`],
            ['POST', '/tasks'],
            ['PATCH', `/tasks/${id}`],
            ['POST', '/groups'],
            ['PUT', '/groups/g'],
          )
          await fc.assert(
            fc.asyncProperty(routes, hostileBody, async ([method, path], body) => {
              const answer = await api.send(method, path, body)
              expect(answer.status).toBeGreaterThanOrEqual(400)
              expect(answer.status).toBeLessThan(500)
              expect(String(answer.headers['content-type'])).toMatch(/^application\/problem\+json/)
              expect(answer.body).toMatchObject({
                status: answer.status,
                code: expect.any(String),
                request_id: expect.any(String),
              })
              expect(world.snapshot()).toBe(before)
            }),
            { numRuns: 2_000 },
          )
        },
      )
    })
  })
}

function expectRefusal(answer: ApiAnswer, pointer: string): void {
  expect(answer.body).toMatchObject({ status: 400, code: 'invalid_request', errors: [{ pointer }] })
  expect(answer.status).toBe(400)
}

/** Never a valid body of any route: an invalid value, an unknown field, or no JSON. */
const badValue = fc.oneof(
  fc.constantFrom<unknown>(
    -1,
    1.5,
    true,
    false,
    1e300,
    -0.1,
    '20',
    '',
    'x'.repeat(5000),
    {},
    [[]],
    { a: { b: 1 } },
    Number.MAX_SAFE_INTEGER,
  ),
  fc.double({ min: 0.1, max: 0.9, noNaN: true }),
)
const knownField = fc.constantFrom(
  'default_vram_overcommit_percent',
  'safety_reserve_mib',
  'max_residency_seconds',
  'placement_strategy',
  'overcommit_vram_percent',
  'vram_mib',
  'noswap',
  'priority',
)
const unknownField = fc.oneof(
  fc.constantFrom(
    'constructor',
    'prototype',
    'toString',
    'hasOwnProperty',
    'owner',
    'DEFAULT_VRAM_OVERCOMMIT_PERCENT',
    ' noswap',
    '$ref',
    '',
  ),
  fc.string({ minLength: 1, maxLength: 12 }).map((name) => `?${name}`),
)
const hostileBody: fc.Arbitrary<string | Buffer> = fc.oneof(
  fc.tuple(knownField, badValue).map(([name, value]) => JSON.stringify({ [name]: value })),
  fc
    .tuple(unknownField, fc.jsonValue())
    .map(([name, value]) => JSON.stringify(Object.fromEntries([[name, value]]))),
  knownField.map((name) => `{"${name}": 1, "${name}": 1}`),
  fc
    .tuple(knownField, fc.constantFrom('__proto__', '\\u005f_proto__'))
    .map(([name, proto]) => `{"${name}": 1, "${proto}": {"${name}": 1}}`),
  fc
    .jsonValue()
    .filter((value) => typeof value !== 'object' || value === null || Array.isArray(value))
    .map((value) => JSON.stringify(value)),
  fc.integer({ min: 33, max: 5_000 }).map((depth) => `{"labels": ${'['.repeat(depth)}${']'.repeat(depth)}}`),
  fc.string().filter((text) => !isJson(text)),
  fc.uint8Array({ minLength: 1 }).map((bytes) => Buffer.from([0xff, ...bytes])),
  fc.constant('{"name": "\\ud800"}'),
  fc.constant('{'.repeat(200_000)),
  fc.constant(`{"name": "${'x'.repeat(1 << 20)}"}`),
)

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
