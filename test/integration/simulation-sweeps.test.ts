/**
 * Sweeps over REST: equal runs and equal bytes to those of `headroom sim sweep`; every impossible request is
 * refused with its field.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../clients/typescript/client.ts'
import { busyScenario, headroom, temporaryFolder, write } from '../support/headroom-command.ts'
import { simulationsWorld, type SimulationsWorld } from '../support/simulations-world.ts'

const folder = temporaryFolder()
const scenario = busyScenario().replace('until: 6h', 'until: 90m')
let world: SimulationsWorld
beforeAll(async () => {
  world = await simulationsWorld()
  // The first test waits for the start of the process.
  await world.api.send('POST', '/scenarios/validate', { scenario: 'thrash-guard' })
})
afterAll(() => world.close())

const ask = (body: object) => world.api.send('POST', '/simulations/sweep', body)

async function swept(body: object): Promise<string> {
  const { status, body: record } = await ask(body)
  expect([status, record.kind], JSON.stringify(record)).toEqual([202, 'sweep'])
  expect(await world.ended(record.id)).toMatchObject({ state: 'done', progress: 1 })
  return record.id as string
}

const bytesOf = async (id: string, accept: string, query = ''): Promise<string> =>
  (await world.api.app.inject({ url: `/api/v1/simulations/${id}/report${query}`, headers: { accept } })).body

describe('a sweep of a scenario that contains a sweep', () => {
  const text = `${scenario.replace('until: 90m', 'until: 10m')}
sweep: { config.default_vram_overcommit_percent: 0..100:20, config.idle_swap_out_seconds: [60, 300],
  config.max_tasks_per_gpu: [2, 4, 8], seeds: 1..9 }
`

  it('has the announced number of runs, whether the request names one of its fields or none', async () => {
    const { facts } = (await world.api.send('POST', '/scenarios/validate', { scenario_text: text })).body
    expect(facts.swept_fields).toEqual([
      { field: 'config.idle_swap_out_seconds', values: 2 },
      { field: 'config.max_tasks_per_gpu', values: 3 },
    ])
    const runs = async (fields: object): Promise<number> => {
      const id = await swept({ scenario_text: text, overcommit_percents: [0], seeds: [1], fields })
      return (await world.api.send('GET', `/simulations/${id}/report`)).body.runs_planned as number
    }
    expect(await runs({})).toBe(2 * 3)
    expect(await runs({ 'config.max_tasks_per_gpu': [16] })).toBe(2)
    expect(
      (await world.api.send('POST', '/scenarios/validate', { scenario_text: scenario })).body.facts
        .swept_fields,
    ).toEqual([])
  })
})

describe('a sweep of other fields over REST', () => {
  it('has the same bytes as on the command line, as JSON, CSV and page', async () => {
    const out = join(folder, 'out')
    const file = write(folder, 'busy.scenario.yaml', scenario)
    const options = [
      '--overcommit',
      '0..50:50',
      '--seeds',
      '1..2',
      '--set',
      'config.idle_swap_out_seconds=60,300',
      '--set',
      'fleet.0.count=1,2',
    ]
    const command = await headroom([
      'sim',
      'sweep',
      file,
      ...options,
      '--objective',
      'starvation.total<=48',
      '--out',
      out,
    ])
    expect(command.code, command.stderr).toBe(0)
    const id = await swept({
      scenario_text: scenario,
      overcommit_percents: [0, 50],
      seeds: [1, 2],
      fields: { 'config.idle_swap_out_seconds': [60, 300], 'fleet.0.count': [1, 2] },
      objectives: ['starvation.total<=48'],
    })
    const written = (name: string): string => readFileSync(join(out, name), 'utf8')
    expect(await bytesOf(id, 'application/json')).toBe(written('result.json'))
    expect(await bytesOf(id, 'text/csv')).toBe(written('runs.csv'))
    expect(await bytesOf(id, 'text/html,*/*;q=0.8')).toBe(written('report.html'))
    expect(await bytesOf(id, '*/*', '?format=csv')).toBe(written('runs.csv'))
    const page = await world.api.send('GET', `/simulations/${id}/report?format=html`)
    expect(page.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-disposition': 'attachment; filename="busy.html"',
      'content-security-policy': expect.stringContaining("default-src 'none'") as string,
      vary: 'accept',
    })
    const report = (await world.api.send('GET', `/simulations/${id}/report`)).body
    expect([report.runs_done, report.runs_planned, report.advice.length]).toEqual([16, 16, 4])
    expect(report.advice[3]).toMatchObject({
      settings: { 'config.idle_swap_out_seconds': 300, 'fleet.0.count': 2 },
    })
    // Each of its runs is available.
    const of = (settings: string, what = 'residency') =>
      `/simulations/${id}/${what}?overcommit_percent=50&seed=2&settings=${encodeURIComponent(settings)}`
    const small = await world.api.send('GET', of('config.idle_swap_out_seconds=60, fleet.0.count=1'))
    const large = await world.api.send('GET', of('config.idle_swap_out_seconds=60, fleet.0.count=2'))
    expect(large.body.gpu_count).toBe(2 * small.body.gpu_count)
    expect((await world.api.send('GET', of(''))).status).toBe(409)
    // Its course over time is also available, in few enough intervals for a comparison.
    const { body: course } = await world.api.send(
      'GET',
      of('config.idle_swap_out_seconds=60, fleet.0.count=1', 'series'),
    )
    const run = report.runs.find(
      (each: { overcommit_percent: number; seed: number; settings: object }) =>
        each.overcommit_percent === 50 &&
        each.seed === 2 &&
        JSON.stringify(each.settings) === JSON.stringify(report.advice[0].settings),
    )
    expect(course.x.length).toBeGreaterThan(30)
    expect(course.x.length).toBeLessThanOrEqual(128)
    expect(course.x.at(-1)).toBeCloseTo(run.virtual_s, 0)
    const busy = course.series.find(({ name }: { name: string }) => name === 'utilization_percent').values
    const mean = busy.reduce(
      (sum: number, each: number, i: number) => sum + each * (course.x[i] - (course.x[i - 1] ?? 0)),
      0,
    )
    expect(mean / course.x.at(-1)).toBeCloseTo(run.metrics.utilization_percent, 1)
    expect((await world.api.send('GET', of('', 'series'))).status).toBe(409)
    expect(await world.api.send('GET', `/simulations/${id}/series?seed=2`)).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/overcommit_percent' }] },
    })
  })

  it('uses the sweep and the percentage of the scenario by default', async () => {
    const own =
      `${scenario}sweep: { config.default_vram_overcommit_percent: [10, 20], ` +
      'config.idle_swap_out_seconds: [60], seeds: 3..4 }\n'
    const ofScenario = (
      await world.api.send('GET', `/simulations/${await swept({ scenario_text: own })}/report`)
    ).body
    const shapes = (runs: { overcommit_percent: number; seed: number; settings: object }[]) =>
      runs.map((run) => [run.overcommit_percent, run.seed, run.settings])
    const idle = { 'config.idle_swap_out_seconds': 60 }
    expect(shapes(ofScenario.runs)).toEqual([
      [10, 3, idle],
      [10, 4, idle],
      [20, 3, idle],
      [20, 4, idle],
    ])
    const id = await swept({ scenario_text: scenario, fields: { 'fleet.0.count': [1] } })
    const percent = Number(/default_vram_overcommit_percent: (\d+)/.exec(scenario)?.[1])
    expect((await world.api.send('GET', `/simulations/${id}/report`)).body.runs[0].overcommit_percent).toBe(
      percent,
    )
  })

  it('has CSV and page of the completed runs when it is cancelled', async () => {
    const percents = Array.from({ length: 100 }, (_, index) => index)
    const { id } = (await ask({ scenario: 'thrash-guard', overcommit_percents: percents })).body
    await world.once(id, ({ progress }) => progress > 0.02)
    expect((await world.api.send('DELETE', `/simulations/${id}`)).body.state).toBe('cancelled')
    const { runs_done: done } = (await world.api.send('GET', `/simulations/${id}/report`)).body
    expect(done).toBeLessThan(percents.length)
    expect((await bytesOf(id, 'text/csv')).trimEnd().split('\n')).toHaveLength(done + 1)
    expect(await bytesOf(id, 'text/html')).toContain('which overcommit percentage?')
  })

  it('can be started, awaited and read with the client module', async () => {
    const url = await world.api.app.listen({ port: 0 })
    const { simulations } = createClient({ url, token: null })
    const { id, state } = await simulations.sweep({
      scenario: 'thrash-guard',
      overcommit_percents: [0],
      seeds: [1],
      fields: { 'config.idle_swap_out_seconds': [60, 300] },
    })
    expect(['queued', 'running']).toContain(state)
    expect(await simulations.ended(id)).toMatchObject({ state: 'done', kind: 'sweep' })
    expect(
      (await simulations.report(id)).advice.map(({ settings }) => settings['config.idle_swap_out_seconds']),
    ).toEqual([60, 300])
    expect((await simulations.csv(id)).split('\n')[0]).toMatch(
      /^overcommit_percent,config\.idle_swap_out_seconds,seed,/,
    )
    expect(await simulations.html(id)).toMatch(/^<!doctype html>/i)
    const run = await simulations.run({ scenario: 'thrash-guard', until_seconds: 60 })
    await simulations.ended(run.id)
    expect((await simulations.list()).map((each) => each.id).slice(0, 2)).toEqual([run.id, id])
    expect((await simulations.get(run.id)).state).toBe('done')
    expect(await simulations.remove(run.id)).toBeNull()
  })

  it('has no CSV and no page of a single run', async () => {
    const { id } = (await world.api.send('POST', '/simulations', { scenario: 'thrash-guard' })).body
    await world.ended(id)
    const { status, body } = await world.api.send('GET', `/simulations/${id}/report?format=csv`)
    expect([status, body.errors]).toEqual([
      400,
      [{ pointer: '/format', detail: 'the format must be json for a run' }],
    ])
    expect((await world.api.send('GET', '/simulations/nothing/report?format=csv')).status).toBe(404)
  })
})

const FLEET = 'fleet: [{ name: "n-{i}", count: 5000, gpus: 2, gpu: { model: A100-40, vram_mib: 40960 } }]'
const LARGE =
  `scenario: t\nversion: 1\n${FLEET}\nworkload: [{ task: { id: a, at: 0s, gpus: 1, vram_mib: 1000 } ` +
  `}]\n${'# x\n'.repeat(200_000)}`
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1)
const PERCENTS = { overcommit_percents: [0] }

/** Request, named field, and part of the reason. */
const REFUSED: Readonly<Record<string, readonly [body: object, pointer: string, words: string]>> = {
  'a value that the field cannot have': [
    { fields: { 'fleet.0.gpus': [1, -1] } },
    '/fields/fleet.0.gpus',
    'with fleet.0.gpus=-1: fleet[0].gpus',
  ],
  'a text for a number': [
    { fields: { 'fleet.0.gpus': ['2'] } },
    '/fields/fleet.0.gpus',
    'with fleet.0.gpus=2',
  ],
  'a field that is not there': [
    { fields: { 'config.nonsense': [1] } },
    '/fields/config.nonsense',
    'config.nonsense',
  ],
  'a list that is not there': [
    { fields: { 'fleet.7.count': [1] } },
    '/fields/fleet.7.count',
    'there is no 7',
  ],
  'a part that is not swept': [
    { fields: { 'assert.final': [1] } },
    '/fields/assert.final',
    'fields of config, fleet',
  ],
  'a way to the prototype': [
    { fields: { 'config.__proto__.polluted': [1] } },
    '/fields/config.__proto__.polluted',
    '__proto__',
  ],
  'a path of 20 keys': [
    { fields: { [`config${'.a'.repeat(20)}`]: [1] } },
    `/fields/config${'.a'.repeat(20)}`,
    'deeper',
  ],
  'a trace of this host': [
    { fields: { 'workload.0.trace': ['/etc/passwd'] } },
    '/fields/workload.0.trace',
    'workload[0]',
  ],
  'the percentage as a field': [
    { fields: { 'config.default_vram_overcommit_percent': [1] } },
    '/fields/config.default_vram_overcommit_percent',
    'overcommit_percents',
  ],
  'a value twice': [{ fields: { 'fleet.0.count': [1, '1'] } }, '/fields/fleet.0.count', 'twice'],
  'no value': [{ fields: { 'fleet.0.count': [] } }, '/fields/fleet.0.count', 'array'],
  'a list as a value': [{ fields: { 'fleet.0.count': [[1]] } }, '/fields/fleet.0.count/0', 'number'],
  'a value with a comma': [
    { fields: { 'fleet.0.name': ['a, b=c'] } },
    '/fields/fleet.0.name/0',
    'without commas',
  ],
  '9 fields': [
    { fields: Object.fromEntries(numbers(9).map((n) => [`config.a${n}`, [1]])) },
    '/fields',
    'at most 8',
  ],
  '201 combinations': [
    { fields: { 'fleet.0.count': numbers(67), 'clock.drain': [1, 2, 3] } },
    '/fields',
    '201 combinations',
  ],
  '2,001 runs': [{ seeds: numbers(200), fields: { 'fleet.0.count': numbers(11) } }, '/seeds', '2200 runs'],
  'more GPUs than are run here': [{ fields: { 'fleet.0.count': [20_000] } }, '/fields', 'the limit is'],
  '10⁹ tasks': [
    { fields: { 'workload.0.rate_per_hour': [1_000_000_000] } },
    '/fields',
    'with workload.0.rate_per_hour=1000000000',
  ],
  'nothing to vary': [{ overcommit_percents: undefined }, '/overcommit_percents', 'required'],
  'a large scenario 200 times': [
    { scenario_text: LARGE, fields: { 'fleet.0.count': numbers(200) } },
    '/scenario',
    'it took more than',
  ],
}

describe('an impossible request', () => {
  it.each(Object.entries(REFUSED))(
    '%s: is refused with its field, without effect',
    async (_, [wish, pointer, words]) => {
      const known = world.simulations.list().length
      const { status, body } = await ask({ scenario_text: scenario, ...PERCENTS, ...wish })
      expect([status, body.code], JSON.stringify(body).slice(0, 500)).toEqual([400, 'invalid_request'])
      expect(body.errors[0].pointer.startsWith(pointer), body.errors[0].pointer).toBe(true)
      expect(body.errors[0].detail).toContain(words)
      expect(JSON.stringify(body)).not.toMatch(/no such file/)
      expect(({} as { polluted?: number }).polluted).toBeUndefined()
      expect(world.simulations.list()).toHaveLength(known)
    },
  )
})
