/** Sessions over REST: simulated worlds under manual control, with the production API inside. */
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Role } from '../../controller/model/role.ts'
import { busyScenario } from '../support/headroom-command.ts'
import { namedAccess } from '../support/named-access.ts'
import { simulationsWorld, type SimulationsWorld } from '../support/simulations-world.ts'
import { WAIT } from '../support/wait.ts'

let world: SimulationsWorld

beforeAll(async () => {
  world = await simulationsWorld(undefined, namedAccess())
})
afterEach(async () => {
  for (const { id, state } of world.simulations.list())
    if (state === 'running') await world.simulations.remove(id, 'The test is over.')
})
afterAll(() => world.close())

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

function as(name: string, role: Role) {
  return (method: Method, path: string, body?: unknown) =>
    world.api.send(method, path, body ?? (method === 'POST' ? {} : undefined), {
      authorization: `Bearer ${name} ${role}`,
    })
}
const root = as('root', 'admin')

async function open(body: object = {}, who = root): Promise<string> {
  const answer = await who('POST', '/simulations', {
    scenario_text: busyScenario(),
    mode: 'session',
    ...body,
  })
  expect(answer.status, JSON.stringify(answer.body)).toBe(202)
  return `/simulations/${answer.body.id}`
}

async function ok(method: Method, path: string, body?: unknown) {
  const answer = await root(method, path, body)
  expect(answer.status, `${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
  return answer.body
}

describe('the time of a session', () => {
  it('advances by single events: a step executes exactly one more', async () => {
    const session = await open()
    let before = await ok('GET', `${session}/session`)
    expect(before).toMatchObject({
      virtual_seconds: 0,
      is_paused: true,
      started_at: '2026-01-01T00:00:00.000Z',
    })
    for (let step = 0; step < 40; step++) {
      const after = await ok('POST', `${session}/step`)
      expect(after.events).toBe(before.events + 1)
      expect(after.virtual_seconds).toBeGreaterThanOrEqual(before.virtual_seconds)
      before = after
    }
    expect((await ok('POST', `${session}/step`, { count: 500 })).events).toBe(before.events + 500)
    await ok('DELETE', session)
  })

  it('moves in both directions: an instant always has the same state', async () => {
    const session = await open()
    const at = async (virtualSeconds: number) =>
      ok('POST', `${session}/seek`, { virtual_seconds: virtualSeconds })
    const hour = await at(3600)
    expect(hour).toMatchObject({ now: '2026-01-01T01:00:00.000Z', virtual_seconds: 3600, inputs: 0 })
    expect(
      (await ok('PUT', `${session}/api/v1/config`, { default_vram_overcommit_percent: 120 }))
        .default_vram_overcommit_percent,
    ).toBe(120)
    const made = await ok('POST', `${session}/api/v1/tasks`, {
      name: 'by-hand',
      vram_mib: 4000,
      priority: 0,
      command: ['x'],
    })
    const later = await at(4200)
    expect(later).toMatchObject({ inputs: 2, inputs_ahead: 0 })
    const early = await at(1800)
    expect(early).toMatchObject({ virtual_seconds: 1800, inputs: 0, inputs_ahead: 2 })
    expect((await root('GET', `${session}/api/v1/tasks/${made.id}`)).status).toBe(404)
    expect((await ok('GET', `${session}/api/v1/config`)).default_vram_overcommit_percent).toBe(60)
    expect((await at(3600)).inputs).toBe(2)
    const again = await at(4200)
    expect([again.state_hash, again.events]).toEqual([later.state_hash, later.events])
    expect((await ok('GET', `${session}/api/v1/tasks/${made.id}`)).name).toBe('by-hand')
    // Another earlier action leads to another future, so the old future is discarded.
    await at(1800)
    await ok('PUT', `${session}/api/v1/config`, { default_vram_overcommit_percent: 10 })
    const other = await at(4200)
    expect(other).toMatchObject({ inputs: 1, inputs_ahead: 0 })
    expect(other.state_hash).not.toBe(later.state_hash)
    await ok('DELETE', session)
  })

  it('returns to a snapshot in the middle of an instant, and a fork continues separately', async () => {
    const session = await open()
    await ok('POST', `${session}/seek`, { virtual_seconds: 1000 })
    await ok('PUT', `${session}/api/v1/config`, { idle_swap_out_seconds: 60 })
    const stepped = await ok('POST', `${session}/step`, { count: 7 })
    const [snapshot] = (await ok('POST', `${session}/snapshot`, { name: 'here' })).snapshots
    expect(snapshot).toMatchObject({ name: 'here', events: stepped.events, state_hash: stepped.state_hash })
    const far = await ok('POST', `${session}/seek`, { virtual_seconds: 3000 })
    const fork = await ok('POST', `${session}/fork`, { snapshot: snapshot.id })
    const forked = `/simulations/${fork.id}`
    expect(await ok('GET', `${forked}/session`)).toMatchObject({
      state_hash: stepped.state_hash,
      events: stepped.events,
      inputs: 1,
    })
    expect((await ok('POST', `${forked}/seek`, { virtual_seconds: 3000 })).state_hash).toBe(far.state_hash)
    await ok('PUT', `${forked}/api/v1/config`, { default_vram_overcommit_percent: 0 })
    expect((await ok('GET', `${session}/api/v1/config`)).default_vram_overcommit_percent).toBe(60)
    expect(await ok('POST', `${session}/seek`, { snapshot: snapshot.id })).toMatchObject({
      state_hash: stepped.state_hash,
    })
    expect((await root('POST', `${session}/seek`, { snapshot: 'nothing' })).status).toBe(409)
    expect((await root('POST', `${session}/seek`, {})).status).toBe(400)
    await ok('DELETE', session)
    await ok('DELETE', forked)
  })

  it('advances by itself at a given speed, and stops when paused or at the end', async () => {
    const session = await open({ speed: null, is_paused: false, until_seconds: 1800 })
    const id = session.replace('/simulations/', '')
    await world.once(id, ({ progress }) => progress === 1)
    expect(await ok('GET', `${session}/session`)).toMatchObject({
      virtual_seconds: 1800,
      ends_after_seconds: 1800,
      is_paused: true,
    })
    expect((await root('POST', `${session}/speed`, { speed: 10 })).body.detail).toContain('Seek back')
    await ok('POST', `${session}/seek`, { virtual_seconds: 100 })
    expect(await ok('POST', `${session}/speed`, { speed: 60 })).toMatchObject({
      is_paused: false,
      speed: 60,
    })
    await vi.waitFor(
      async () => expect((await ok('GET', `${session}/session`)).virtual_seconds).toBeGreaterThan(100),
      WAIT,
    )
    const paused = await ok('POST', `${session}/pause`)
    expect(paused.virtual_seconds).toBeGreaterThan(100)
    expect(await ok('GET', `${session}/session`)).toMatchObject({
      is_paused: true,
      state_hash: paused.state_hash,
    })
    expect((await root('POST', `${session}/speed`, { speed: 0 })).status).toBe(400)
    await ok('DELETE', session)
  })
})

describe('the production API inside a session', () => {
  it('shows only its own cluster, and streams its events', async () => {
    const session = await open()
    await ok('POST', `${session}/seek`, { virtual_seconds: 3600 })
    expect(await ok('GET', `${session}/api/v1/summary`)).toMatchObject({
      at: '2026-01-01T01:00:00.000Z',
      fleet: 'simulated',
      nodes: { total: 2, up: 2 },
    })
    const { items, total } = await ok('GET', `${session}/api/v1/tasks?state=running&limit=5`)
    expect([items.length, total > 5]).toEqual([5, true])
    expect(
      (await ok('GET', `${session}/api/v1/series?names=utilization_percent&from=-30m`)).x.length,
    ).toBeGreaterThan(100)
    const stream = await world.api.app.inject({
      url: `/api/v1${session}/api/v1/events/stream?after=0`,
      headers: { authorization: 'Bearer root admin' },
      payloadAsStream: true,
    })
    expect(stream.headers['content-type']).toContain('text/event-stream')
    let text = ''
    for await (const piece of stream.stream()) {
      text += String(piece)
      if (text.includes('task_placed')) break
    }
    expect(text).toContain('event: event\n')
    const missing = await root('GET', `${session}/api/v1/nothing`)
    expect([missing.status, missing.body.code]).toEqual([404, 'route_not_found'])
    const wrong = await root('PUT', `${session}/api/v1/config`, { default_vram_overcommit_percent: 1001 })
    expect([wrong.status, wrong.body.errors[0].pointer]).toEqual([400, '/default_vram_overcommit_percent'])
    expect((await root('GET', `${session}/api/v1/simulations`)).status).toBe(409)
    expect((await ok('GET', `${session}/session`)).inputs).toBe(0)
    await ok('DELETE', session)
    expect((await root('GET', `${session}/api/v1/summary`)).status).toBe(409)
    expect((await root('GET', '/simulations/nothing/api/v1/summary')).status).toBe(404)
  })

  it('is usable by its owner and operators, and readable by others', async () => {
    const trainee = as('trainee', 'submitter')
    const session = await open({}, trainee)
    const config = { default_vram_overcommit_percent: 5 }
    expect((await trainee('PUT', `${session}/api/v1/config`, config)).status).toBe(200)
    expect((await as('other', 'operator')('PUT', `${session}/api/v1/config`, config)).status).toBe(200)
    const viewer = as('other', 'viewer')
    expect((await viewer('GET', `${session}/api/v1/config`)).status).toBe(200)
    expect((await viewer('PUT', `${session}/api/v1/config`, config)).status).toBe(403)
    expect((await as('another', 'submitter')('PUT', `${session}/api/v1/config`, config)).status).toBe(403)
    expect((await as('another', 'submitter')('POST', `${session}/step`)).status).toBe(403)
    expect((await as('another', 'submitter')('DELETE', session)).status).toBe(403)
    const revisions = await trainee('GET', `${session}/api/v1/config/revisions`)
    expect(revisions.body.items.map(({ author }: { author: string }) => author)).toEqual(['other', 'trainee'])
    expect((await trainee('DELETE', session)).status).toBe(202)
  })
})

describe('a fault in a session', () => {
  it('takes effect from then on, and a hidden fault is invisible to the trainee', async () => {
    const trainee = as('trainee', 'submitter')
    const session = await open({}, trainee)
    await trainee('POST', `${session}/seek`, { virtual_seconds: 1800 })
    const crash = await trainee('POST', `${session}/faults`, { fault: { crash: 'a100-0', for: '10m' } })
    expect(crash.body.items).toMatchObject([
      { virtual_seconds: 1800, is_hidden: false, by: 'trainee', fault: { kind: 'crash', node: 'a100-0' } },
    ])
    const hidden = { fault: { slow_swap: 'a100-1', factor: 50, for: '5h' }, is_hidden: true }
    expect((await trainee('POST', `${session}/faults`, hidden)).status).toBe(403)
    expect((await as('op', 'operator')('POST', `${session}/faults`, hidden)).status).toBe(403)
    expect((await root('POST', `${session}/faults`, hidden)).body.items).toHaveLength(2)
    const crashed = await trainee('POST', `${session}/seek`, { virtual_seconds: 2000 })
    const { items } = (await trainee('GET', `${session}/api/v1/nodes`)).body
    expect(
      items.map(({ name, status }: { name: string; status: string }) => [name, status === 'up']),
    ).toEqual([
      ['a100-0', false],
      ['a100-1', true],
    ])
    await trainee('POST', `${session}/seek`, { virtual_seconds: 600 })
    expect((await trainee('POST', `${session}/seek`, { virtual_seconds: 2000 })).body.state_hash).toBe(
      crashed.body.state_hash,
    )
    const readable = [
      '',
      '/session',
      '/faults',
      '/events',
      '/api/v1/events?limit=200&order=newest',
      '/api/v1/nodes',
      '/api/v1/decisions',
    ]
    await trainee('DELETE', `${session}`)
    for (const role of ['viewer', 'submitter', 'operator'] as const) {
      for (const path of readable) {
        const answer = await as('trainee', role)('GET', `${session}${path}`)
        expect(JSON.stringify(answer.body), `${path} as ${role}`).not.toMatch(/slow_swap|50000/)
      }
    }
  })

  it('is checked by the rules of the scenario language', async () => {
    const session = await open()
    const wrong = await root('POST', `${session}/faults`, { fault: { crash: 'a100-9', for: '10m' } })
    expect([wrong.status, wrong.body.errors[0].pointer]).toEqual([400, '/fault'])
    expect(wrong.body.detail).toMatch(/fault\.crash: .*a100-9/)
    expect((await root('POST', `${session}/faults`, { fault: { swarm: { until: '1h' } } })).status).toBe(400)
    expect((await ok('GET', `${session}/faults`)).items).toEqual([])
    await ok('DELETE', session)
  })
})

describe('a session from a snapshot', () => {
  it('starts with its tasks in place, and its faults take effect', async () => {
    const scenario = readFileSync('scenarios/faults/from-a-snapshot.scenario.yaml', 'utf8').replace(
      /^faults:[^]*^assert:/m,
      'assert:',
    )
    const session = await open({ scenario_text: scenario })
    const task = (id: string) => ok('GET', `${session}/api/v1/tasks/${id}`)
    const places = async () => {
      const tasks = await Promise.all(['stays', 'stays-out'].map(task))
      return tasks.map(({ state, residency, placement }) => [state, residency, placement.node_name])
    }
    const inPlace = [
      ['running', 'resident', 'n2'],
      ['running', 'swapped_out', 'n2'],
    ]
    expect(await places()).toEqual(inPlace)
    for (const fault of [{ bounce: 'n2' }, { crash: 'controller' }])
      await ok('POST', `${session}/faults`, { fault })
    await ok('POST', `${session}/seek`, { virtual_seconds: 60 })
    expect(await places()).toEqual(inPlace)
    await ok('POST', `${session}/faults`, { fault: { crash: 'n2', for: '1m' } })
    await ok('POST', `${session}/seek`, { virtual_seconds: 400 })
    expect((await task('stays')).state).toBe('lost')
    await ok('DELETE', session)
  })
})

describe('the number of sessions', () => {
  it('is limited to four: the next one is refused with a retry time, and a deletion makes room', async () => {
    const sessions = [await open(), await open(), await open(), await open()]
    const more = await root('POST', '/simulations', { scenario_text: busyScenario(), mode: 'session' })
    expect([more.status, more.body.code, more.headers['retry-after']]).toEqual([
      429,
      'too_many_simulations',
      '60',
    ])
    for (const session of sessions) expect((await root('DELETE', session)).body.state).toBe('cancelled')
    await ok('DELETE', await open())
  })
})
