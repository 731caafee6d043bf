/** Scenarios and traces over REST: separate for each owner, limited, and refused before the disk is full. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { namedAccess } from '../support/named-access.ts'
import { simulationsWorld, type SimulationsWorld } from '../support/simulations-world.ts'

const MIB = 1_048_576
const GIB = 1024 * MIB
const OWN = readFileSync(new URL('../../scenarios/traces/openb-sample.trace.jsonl', import.meta.url))
const scenario = (name: string, text = ''): string =>
  `scenario: ${name}\nversion: 1\nfleet: [{ name: n, gpus: 1, gpu: { model: A100-40, vram_mib: 40960 ` +
  `} }]\nworkload: [{ task: { id: t, at: 0s, vram_mib: 8000 } }]\n${text}`

let world: SimulationsWorld
const limits = { maxBytes: 10 * MIB, maxBytesPerOwner: 2 * MIB, minFreeBytes: 0, minFreePercent: 0 }
const as = (who: string) => ({ authorization: `Bearer ${who}` })
const putScenario = (who: string, name: string, text = '') =>
  world.api.send('POST', '/scenarios', { text: scenario(name, text) }, as(who))
const putTrace = (who: string, name: string, body: unknown = OWN) =>
  world.api.send('POST', `/traces?name=${name}`, body, {
    'content-type': 'application/octet-stream',
    ...as(who),
  })

describe('An upload of a submitter', () => {
  beforeEach(async () => (world = await simulationsWorld(undefined, namedAccess(), limits)))
  afterEach(() => world.close())

  it('is replaced and deleted by its owner and by operators, and by no other submitter', async () => {
    expect((await putScenario('alice submitter', 'plan', '# first')).status).toBe(201)
    expect((await putTrace('alice submitter', 'jobs')).status).toBe(201)
    const refused = [await putScenario('bob submitter', 'plan'), await putTrace('bob submitter', 'jobs')]
    refused.push(await world.api.send('DELETE', '/scenarios/plan', undefined, as('bob submitter')))
    refused.push(await world.api.send('DELETE', '/traces/jobs', undefined, as('bob submitter')))
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403])
    expect(refused[0]?.body.detail).toBe(
      'The scenario plan belongs to alice. Choose another name, or ask an operator.',
    )
    expect(refused[1]?.body.detail).toBe(
      'The trace jobs belongs to alice. Choose another name, or ask an operator.',
    )
    expect((await world.api.send('GET', '/scenarios/plan')).body).toMatchObject({
      created_by: 'alice',
      text: scenario('plan', '# first'),
    })
    expect((await putScenario('alice submitter', 'plan', '# second')).status).toBe(201)
    expect((await putScenario('olga operator', 'plan', '# third')).status).toBe(201)
    expect((await world.api.send('GET', '/scenarios/plan')).body).toMatchObject({
      created_by: 'alice',
      text: scenario('plan', '# third'),
    })
    expect((await putTrace('olga operator', 'jobs')).body).toMatchObject({ created_by: 'alice' })
    expect((await world.api.send('DELETE', '/scenarios/plan', undefined, as('alice submitter'))).status).toBe(
      204,
    )
    expect((await world.api.send('DELETE', '/traces/jobs', undefined, as('alice submitter'))).status).toBe(
      204,
    )
  })

  it('counts for its owner, as shown by GET /usage, up to a limit', async () => {
    expect((await putTrace('alice submitter', 'jobs')).body).toMatchObject({ bytes: OWN.length })
    expect((await putScenario('bob submitter', 'plan')).status).toBe(201)
    const bobs = Buffer.byteLength(scenario('plan'))
    const usage = { traces: 1, scenarios: 0, bytes: OWN.length, limit_bytes: 2 * MIB }
    const total = { total_bytes: OWN.length + bobs, total_limit_bytes: 10 * MIB }
    expect((await world.api.send('GET', '/usage', undefined, as('alice submitter'))).body).toEqual({
      owner: 'alice',
      uploads: { ...usage, ...total },
      files: { bytes: 0, total_bytes: 0, folder_limit_bytes: 0, limit_bytes: 0, total_limit_bytes: 0 },
    })
    const large = Buffer.alloc(3 * MIB, 'x')
    const refused = await putTrace('alice submitter', 'large', large)
    expect(refused).toMatchObject({ status: 507, body: { code: 'uploads_full' } })
    expect(refused.body.detail).toMatch(/^The limit of 2 MiB for your uploads is reached\./)
    expect((await putTrace('carol submitter', 'small')).status).toBe(201)
    expect(
      readdirSync(join(world.dataDir, 'simulations/traces')).filter((name) => name.startsWith('.')),
    ).toEqual([])
  })
})

describe('A disk with too little free space', () => {
  afterEach(() => world.close())

  it('refuses uploads before the file is read to its end, and keeps no part of it', async () => {
    const noLimits = { ...limits, maxBytes: 2 ** 50, maxBytesPerOwner: 2 ** 50 }
    world = await simulationsWorld(undefined, namedAccess(), { ...noLimits, minFreePercent: 100 })
    let sent = 0
    const endless = Readable.from(
      (function* () {
        for (; sent < GIB; sent += MIB) yield Buffer.alloc(MIB)
      })(),
    )
    const headers = { 'content-type': 'application/octet-stream', ...as('alice submitter') }
    const refused = await world.api.app.inject({
      method: 'POST',
      url: '/api/v1/traces?name=endless',
      payload: endless,
      headers,
    })
    const { detail } = refused.json<{ detail: string }>()
    expect([refused.statusCode, detail]).toEqual([
      507,
      'The disk is low on space: uploads are refused for now.',
    ])
    expect(sent).toBeLessThan(64 * MIB)
    expect((await putScenario('alice submitter', 'plan')).status).toBe(507)
    expect(readdirSync(join(world.dataDir, 'simulations/traces'))).toEqual([])
  })
})
