/** Simulations over REST: real processes, real files, the real library. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { SimulationRecord } from '../../controller/ports/simulation.ts'
import type { RunResidencyBody } from '../../controller/api/simulations/schema.ts'
import { busyScenario, temporaryFolder } from '../support/headroom-command.ts'
import { LONG_SCENARIO, simulationsWorld, type SimulationsWorld } from '../support/simulations-world.ts'

/** Shared: each world starts a process that reads scenarios. */
let world: SimulationsWorld
beforeAll(async () => {
  world = await simulationsWorld()
})
afterAll(() => world.close())

const worlds: SimulationsWorld[] = []
afterEach(async () => {
  for (const own of worlds.splice(0)) await own.close()
})

/** A world of one test. */
async function open(dataDir?: string): Promise<SimulationsWorld> {
  const own = await simulationsWorld(dataDir)
  worlds.push(own)
  return own
}

/** One hour of the busy scenario. */
const shortScenario = (): string => busyScenario().replace('until: 6h', 'until: 1h')

async function start(body: object, { api } = world): Promise<string> {
  const answer = await api.send('POST', '/simulations', body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(202)
  expect(answer.headers['location']).toBe(`/api/v1/simulations/${answer.body.id}`)
  return answer.body.id as string
}

/** Their errors: a task has one state at a time on a GPU, and no state after its end. */
function barFaults({ bars, ends_seconds }: RunResidencyBody): readonly string[] {
  const free = new Map<string, number>()
  return bars.gpu.flatMap((gpu, at) => {
    const [task, from = 0, to = 0] = [bars.task[at], bars.from_seconds[at], bars.to_seconds[at]]
    const key = `${gpu} ${task}`
    const isWrong = from >= to || to > ends_seconds || from < (free.get(key) ?? 0)
    free.set(key, to)
    return isWrong ? [`bar ${at} of task ${task} on GPU ${gpu}: ${from} to ${to}`] : []
  })
}

describe('a run over REST', () => {
  it('of a library scenario has the recorded digest, with its figures and its series', async () => {
    const id = await start({ scenario: 'thrash-guard' })
    expect(await world.ended(id)).toMatchObject({ state: 'done', progress: 1, reason: null })
    const expected = JSON.parse(
      readFileSync(new URL('../../scenarios/thrash-guard.expected.json', import.meta.url), 'utf8'),
    ) as object
    const report = (await world.api.send('GET', `/simulations/${id}/report`)).body
    expect(report).toMatchObject(expected)
    const { x, series } = (await world.api.send('GET', `/simulations/${id}/series`)).body
    expect(x.length).toBeGreaterThan(10)
    for (const { name, values } of series) expect(values, name).toHaveLength(x.length)
    const residency = (await world.api.send('GET', `/simulations/${id}/residency`)).body as RunResidencyBody
    expect(residency).toMatchObject({
      gpus: ['gpu-node / 0', 'gpu-node / 1'],
      gpu_count: 2,
      cut_at_seconds: null,
      ends_seconds: report.virtual_s,
    })
    expect(barFaults(residency)).toEqual([])
    expect(residency.bars.kind.filter((kind) => kind === 'out').length).toBeGreaterThan(10)
    expect(await world.api.send('GET', `/simulations/${id}/residency?seed=1`)).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/seed' }] },
    })
    const stream = await world.api.app.inject(`/api/v1/simulations/${id}/events`)
    expect(stream.body).toContain('event: simulation\n')
    expect(stream.body).toContain(`event: end\ndata: {"id":"${id}","state":"done"}`)
  })

  it('accepts another seed, end and percentage than the scenario', async () => {
    const text = shortScenario()
    const ids = [
      await start({ scenario_text: text }),
      await start({ scenario_text: text, seed: 7 }),
      await start({ scenario_text: text, overcommit_percent: 0 }),
      await start({ scenario_text: text, until_seconds: 1800 }),
    ]
    const digests = new Set<string>()
    for (const id of ids) {
      expect(await world.ended(id)).toMatchObject({ state: 'done' })
      digests.add((await world.api.send('GET', `/simulations/${id}/report`)).body.digest)
    }
    expect(digests.size).toBe(4)
    const { total, items } = (await world.api.send('GET', '/simulations')).body
    expect(items).toHaveLength(total)
    expect(items.slice(0, 4).map(({ id }: { id: string }) => id)).toEqual(ids.toReversed())
  })

  it('that is cancelled ends early, stays in the list, and is deleted by a second DELETE', async () => {
    const id = await start({ scenario_text: LONG_SCENARIO })
    await world.once(id, ({ progress }) => progress > 0)
    expect((await world.api.send('GET', `/simulations/${id}/report`)).status).toBe(409)
    const cancelled = await world.api.send('DELETE', `/simulations/${id}`)
    expect(cancelled.body.progress).toBeLessThan(1)
    expect([cancelled.status, cancelled.body]).toMatchObject([
      202,
      { state: 'cancelled', reason: 'Cancelled by api.' },
    ])
    expect((await world.api.send('DELETE', `/simulations/${id}`)).status).toBe(204)
    expect((await world.api.send('GET', `/simulations/${id}`)).status).toBe(404)
    expect(readdirSync(join(world.dataDir, 'simulations/runs'))).not.toContain(id)
  })

  it('waits in a queue; a full queue answers 429 with Retry-After', async () => {
    const world = await open()
    const states: string[] = []
    for (let asked = 0; asked < 34; asked++)
      states.push((await world.api.send('POST', '/simulations', { scenario_text: LONG_SCENARIO })).body.state)
    expect([
      states.filter((state) => state === 'running').length,
      states.filter((state) => state === 'queued').length,
    ]).toEqual([2, 32])
    const more = await world.api.send('POST', '/simulations', { scenario_text: LONG_SCENARIO })
    expect([more.status, more.body.code, more.headers['retry-after']]).toEqual([
      429,
      'too_many_simulations',
      '10',
    ])
    const waiting = world.simulations.list().find(({ state }) => state === 'queued') as SimulationRecord
    expect((await world.api.send('DELETE', `/simulations/${waiting.id}`)).body).toMatchObject({
      state: 'cancelled',
      started_at: null,
    })
    expect((await world.api.send('POST', '/simulations', { scenario_text: LONG_SCENARIO })).status).toBe(202)
  })

  it('survives a restart if it has ended, and otherwise fails', async () => {
    const dataDir = temporaryFolder()
    const first = await open(dataDir)
    const id = await start({ scenario_text: shortScenario(), until_seconds: 600 }, first)
    await first.ended(id)
    await first.simulations.close()
    const unfinished = {
      ...first.simulations.get(id),
      id: '00000000-0000-4000-8000-000000000000',
      state: 'running',
      endedAt: null,
    }
    const folder = join(dataDir, 'simulations/runs', unfinished.id)
    mkdirSync(folder)
    writeFileSync(join(folder, 'record.json'), JSON.stringify(unfinished))
    const second = await open(dataDir)
    expect((await second.api.send('GET', `/simulations/${id}`)).body).toMatchObject({ state: 'done' })
    expect((await second.api.send('GET', `/simulations/${id}/report`)).body.digest).toMatch(/^[0-9a-f]{64}$/)
    expect((await second.api.send('GET', `/simulations/${unfinished.id}`)).body).toMatchObject({
      state: 'failed',
      reason: 'The controller restarted during the simulation.',
    })
  })
})

describe('a sweep over REST', () => {
  it('recommends a percentage, from runs equal to single simulations', async () => {
    const body = {
      scenario_text: shortScenario(),
      until_seconds: 1800,
      overcommit_percents: [0, 60],
      seeds: [1, 2],
      objectives: ['starvation.total<=90'],
    }
    const answer = await world.api.send('POST', '/simulations/sweep', body)
    expect([answer.status, answer.body.kind]).toEqual([202, 'sweep'])
    expect(await world.ended(answer.body.id)).toMatchObject({ state: 'done', progress: 1 })
    const report = (await world.api.send('GET', `/simulations/${answer.body.id}/report`)).body
    expect(report).toMatchObject({
      runs_done: 4,
      runs_planned: 4,
      summary: { length: 2 },
      advice: [{ settings: {}, objectives: ['starvation.total<=90'] }],
    })
    expect(report.advice[0].text.length).toBeGreaterThan(20)
    const single = await start({
      scenario_text: shortScenario(),
      until_seconds: 1800,
      overcommit_percent: 60,
      seed: 2,
    })
    await world.ended(single)
    const { digest } = (await world.api.send('GET', `/simulations/${single}/report`)).body
    expect(report.runs.at(-1)).toMatchObject({ overcommit_percent: 60, seed: 2, digest })
  })

  it('keeps its completed runs when it is cancelled', async () => {
    const percents = Array.from({ length: 100 }, (_, index) => index)
    const { id } = (
      await world.api.send('POST', '/simulations/sweep', {
        scenario: 'thrash-guard',
        overcommit_percents: percents,
      })
    ).body
    await world.once(id, ({ progress }) => progress > 0.02)
    expect((await world.api.send('DELETE', `/simulations/${id}`)).body.state).toBe('cancelled')
    const report = (await world.api.send('GET', `/simulations/${id}/report`)).body
    expect(report.runs_planned).toBe(100)
    expect(report.runs_done).toBeGreaterThan(1)
    expect(report.runs_done).toBeLessThan(100)
    expect(report.runs).toHaveLength(report.runs_done)
  })

  it('refuses invalid objectives and sizes', async () => {
    const send = (over: object) =>
      world.api.send('POST', '/simulations/sweep', {
        scenario: 'thrash-guard',
        overcommit_percents: [0],
        ...over,
      })
    expect((await send({ objectives: ['speed>3'] })).body.errors[0].pointer).toBe('/objectives')
    const many = Array.from({ length: 200 }, (_, index) => index)
    expect((await send({ overcommit_percents: many, seeds: many })).body.errors[0].pointer).toBe('/seeds')
    expect((await send({ overcommit_percents: [] })).status).toBe(400)
    expect((await send({ scenario: 'nothing' })).status).toBe(404)
  })
})

describe('a trace over REST', () => {
  it('is stored or imported with counts, usable in scenarios, and deletable', async () => {
    const own = readFileSync(new URL('../../scenarios/traces/openb-sample.trace.jsonl', import.meta.url))
    const send = (query: string, body: Buffer | string) =>
      world.api.send('POST', `/traces?${query}`, body, { 'content-type': 'application/octet-stream' })
    const taken = await send('name=mine', own)
    expect([taken.status, taken.body.format, taken.body.tasks], JSON.stringify(taken.body)).toEqual([
      201,
      'trace',
      180,
    ])
    const jobs =
      'job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n1,1,0,10,a,600,1\n' +
      '2,2,5,10,a,0,1\n3,1,9,10,a,60,1\n'
    const imported = await send('name=jobs&format=tiresias&activity_model=serving', jobs)
    expect([imported.status, imported.body.rows], JSON.stringify(imported.body)).toEqual([201, 3])
    expect(Object.values(imported.body.dropped as Record<string, number>)).toEqual([1])
    expect(
      (await world.api.send('GET', '/traces')).body.items.map(({ name }: { name: string }) => name),
    ).toEqual(['jobs', 'mine'])
    const text =
      'scenario: traced\nversion: 1\nfleet: [{ name: n, gpus: 8, gpu: { model: A100-40, vram_mib: ' +
      '40960 } }]\nworkload: [{ trace: traces/jobs.trace.jsonl }]'
    const id = await start({ scenario_text: text })
    expect(await world.ended(id)).toMatchObject({ state: 'done' })
    expect((await world.api.send('GET', `/simulations/${id}/report`)).body.metrics.tasks.submitted).toBe(2)
    // Larger than any other body may be.
    const [header = '', line = ''] = own.toString().split('\n')
    const large = [
      header,
      ...Array.from({ length: 4_000 }, (_, index) => line.replace(/"id":"[^"]*"/, `"id":"t${index}"`)),
    ].join('\n')
    expect((await send('name=large', `${large}\n`)).body).toMatchObject({ tasks: 4_000 })
    const wrong = await send('name=wrong', 'no trace at all')
    expect([wrong.status, wrong.body.detail]).toEqual([400, expect.stringContaining('slurm') as string])
    expect((await send('name=wrong&format=nothing', jobs)).body.detail).toContain('tiresias')
    expect((await send('name=../x', own)).status).toBe(400)
    expect((await send('name=openb-sample', own)).status).toBe(409)
    expect((await world.api.send('DELETE', '/traces/mine')).status).toBe(204)
    expect((await world.api.send('DELETE', '/traces/mine')).status).toBe(404)
    expect(
      readdirSync(join(world.dataDir, 'simulations/traces')).filter((name) => name.includes('upload')),
    ).toEqual([])
  })
})

const NINE_ALIASES = [...'abcdefghi'].map((name) => Array(9).fill(`*${name}`).join(','))
const BOMB = `a: &a [x,x,x,x,x,x,x,x,x]
${[...'bcdefghij'].map((name, index) => `${name}: &${name} [${NINE_ALIASES[index]}]`).join('\n')}
`
const FLEET = 'fleet: [{ name: n, gpus: 1, gpu: { model: A100-40, vram_mib: 40960 } }]'
const HOSTILE: Readonly<Record<string, string>> = {
  'an alias bomb': BOMB,
  '20,000 levels': `scenario: ${'['.repeat(20_000)}${']'.repeat(20_000)}`,
  '20,000 levels of maps': '{a: '.repeat(20_000),
  'prototype keys':
    `scenario: p\nversion: 1\n${FLEET}\n__proto__: { polluted: 1 }\n` +
    'constructor: { prototype: { polluted: 1 } }',
  '10⁹ tasks':
    `scenario: t\nversion: 1\n${FLEET}\n` +
    'workload: [{ generate: poisson, rate_per_hour: 1, count: 1000000000, vram_mib: 10 }]',
  'tasks for ever':
    `scenario: t\nversion: 1\nclock: { until: 3650d }\n${FLEET}\n` +
    'workload: [{ generate: poisson, rate_per_hour: 10000, vram_mib: 10 }]',
  '10⁹ nodes':
    'scenario: t\nversion: 1\nfleet: [{ name: "n-{i}", count: 1000000000, gpus: 8, gpu: { model: ' +
    'A100-40, vram_mib: 40960 } }]',
  'more GPUs than are run here':
    'scenario: t\nversion: 1\nfleet: [{ name: "n-{i}", count: 9000, gpus: 8, gpu: { model: A100-40, ' +
    'vram_mib: 40960 } }]',
  'a million problems': `scenario: t\n${'x: 1\n'.repeat(150_000)}`,
  'a file of this host as a trace':
    `scenario: t\nversion: 1\n${FLEET}\n` + 'workload: [{ trace: /etc/passwd }, { trace: ../package.json }]',
  nothing: ' ',
}

describe('a hostile scenario', () => {
  it.each(Object.entries(HOSTILE))('%s: is refused, and the next one is read', async (_, text) => {
    const known = world.simulations.list().length
    const { status, body } = await world.api.send('POST', '/simulations', { scenario_text: text })
    expect([status, body.code], JSON.stringify(body)).toEqual([400, 'invalid_request'])
    expect(JSON.stringify(body)).not.toMatch(/\/etc|passwd|package\.json|no such file/)
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
    expect(
      (await world.api.send('POST', '/scenarios/validate', { scenario: 'thrash-guard' })).body.is_valid,
    ).toBe(true)
    expect(world.simulations.list()).toHaveLength(known)
  })
})

describe('the library of scenarios', () => {
  it('lists the included scenarios with text and description', async () => {
    const { items, total } = (await world.api.send('GET', '/scenarios')).body
    expect(total).toBe(items.length)
    expect(items.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(['swap-fairness-basic', 'thrash-guard']),
    )
    const one = (await world.api.send('GET', '/scenarios/thrash-guard')).body
    expect(one).toMatchObject({
      name: 'thrash-guard',
      is_own: false,
      text: expect.stringContaining('scenario: thrash-guard') as string,
    })
    expect(one.description.length).toBeGreaterThan(20)
    expect((await world.api.send('GET', '/scenarios/nothing')).status).toBe(404)
    expect((await world.api.send('DELETE', '/scenarios/thrash-guard')).status).toBe(409)
  })

  it('stores scenarios of users, which can be run by name and deleted', async () => {
    const stored = await world.api.send('POST', '/scenarios', { text: busyScenario() })
    expect([stored.status, stored.headers['location'], stored.body.gpus]).toEqual([
      201,
      '/api/v1/scenarios/busy',
      8,
    ])
    expect((await world.api.send('GET', '/scenarios/busy')).body).toMatchObject({
      is_own: true,
      purpose: 'own',
      text: busyScenario(),
    })
    const id = await start({ scenario: 'busy', until_seconds: 600 })
    expect(await world.ended(id)).toMatchObject({ state: 'done', scenario: 'busy' })
    expect(
      (await world.api.send('POST', '/scenarios', { text: busyScenario().replace('busy', 'thrash-guard') }))
        .status,
    ).toBe(409)
    expect((await world.api.send('POST', '/scenarios', { text: 'scenario: ../x' })).status).toBe(400)
    expect((await world.api.send('DELETE', '/scenarios/busy')).status).toBe(204)
    expect((await world.api.send('POST', '/simulations', { scenario: 'busy' })).status).toBe(404)
  })

  it('marks a scenario of ten years as too large for a complete run, but not for a session', async () => {
    const { items } = (await world.api.send('GET', '/scenarios')).body
    const entry = items.find(({ name }: { name: string }) => name === 'live-demo')
    expect(entry.too_large_because).toMatch(/^The scenario has about 4380000 tasks/)
    const tooLarge = items.filter(
      (each: { too_large_because: string | null }) => each.too_large_because !== null,
    )
    expect(tooLarge.map(({ name }: { name: string }) => name)).toEqual(['live-demo'])
    const sends = (path: string, body: object) =>
      world.api.send('POST', path, { scenario: 'live-demo', ...body })
    expect((await sends('/simulations', {})).body.errors[0].detail).toBe(entry.too_large_because)
    const session = await sends('/simulations', { mode: 'session' })
    expect([session.status, session.body.kind], JSON.stringify(session.body)).toEqual([202, 'session'])
    await world.api.send('DELETE', `/simulations/${session.body.id}`)
    const ran = await world.ended(await start({ scenario: 'live-demo', until_seconds: 600 }))
    expect([ran.state, ran.reason]).toEqual(['done', null])
    expect((await sends('/simulations/sweep', { overcommit_percents: [0], seeds: [1] })).status).toBe(400)
    const { body: sweep } = await sends('/simulations/sweep', {
      overcommit_percents: [0],
      seeds: [1],
      until_seconds: 600,
    })
    expect(await world.ended(sweep.id)).toMatchObject({ state: 'done' })
    const flood =
      `scenario: t\nversion: 1\n${FLEET}\n` +
      'workload: [{ generate: poisson, rate_per_hour: 1000000000, vram_mib: 10 }]\n' +
      'clock: { until: 3650d }'
    const refused = await world.api.send('POST', '/simulations', { scenario_text: flood, mode: 'session' })
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_request'])
  })

  it('reports all errors of a scenario with line and column', async () => {
    const text =
      'scenario: wrong\nversion: 2\nfleet:\n  - { name: n, gpus: 0, gpu: { model: A, vram_mib: 1 } }\n'
    const { body } = await world.api.send('POST', '/scenarios/validate', { scenario_text: text })
    expect(body).toMatchObject({ is_valid: false, facts: null })
    expect(body.problems.map(({ line, path }: { line: number; path: string }) => [line, path])).toEqual([
      [2, 'version'],
      [4, 'fleet[0].gpus'],
    ])
    const inline = await world.api.send('POST', '/scenarios/validate', {
      scenario_inline: { scenario: 'x', version: 1, fleet: [] },
    })
    expect(inline.body.problems[0]).toMatchObject({ line: 4, path: 'fleet' })
    expect(
      (await world.api.send('POST', '/scenarios/validate', { scenario: 'a', scenario_text: 'b' })).status,
    ).toBe(400)
  })
})
