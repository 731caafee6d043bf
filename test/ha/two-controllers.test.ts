/** Two controllers on one PostgreSQL store under load: forwarding, planned handovers, and who leads. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { figure, newFolder } from '../durability/controller-on.ts'
import { headroom } from '../support/headroom-command.ts'
import { whyNoPostgres, type PostgresServer } from '../support/postgres-server.ts'
import type { Load } from './load.ts'
import { Pair, type LeaseRow, type Running } from './pair.ts'

const HANDOVERS = figure('HA_HANDOVERS', 1)
const LEASE_MS = figure('HA_LEASE_MS', 2_000)
const OPEN_TASKS = figure('HA_OPEN_TASKS', 0)

describe.skipIf(whyNoPostgres() !== null)('two controllers on PostgreSQL', () => {
  let server: PostgresServer
  let running: readonly Running[]
  let load: Load
  let pair: Pair
  beforeAll(async () => {
    pair = await Pair.start({ leaseMs: LEASE_MS, openTasks: OPEN_TASKS })
    ;({ server, running, load } = pair)
  })
  afterAll(() => pair.end())
  const lease = (): Promise<LeaseRow> => pair.lease()
  const leader = (): Promise<Running> => pair.leader()
  const standbyIsThere = () => pair.standbyIsThere()
  const standbyIsReady = () => pair.standbyIsReady()

  it('answers at the address of the standby, through the leader', async () => {
    await standbyIsThere()
    const { name } = await lease()
    const root = running.find((each) => each.name !== name)?.root ?? ''
    const ready = async (path: string) => (await fetch(`${root}${path}`)).status
    expect([await ready('/livez'), await ready('/readyz'), await ready('/readyz?role=leader')]).toEqual([
      200, 200, 503,
    ])
    const submitted = await fetch(`${root}/api/v1/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'through the standby', vram_mib: 1_000 }),
    })
    expect(submitted.status).toBe(201)
    const { id } = (await submitted.json()) as { readonly id: string }
    const atLeader = (await leader()).root
    expect((await fetch(`${atLeader}/api/v1/tasks/${id}`)).status).toBe(200)
    // It has no broker here, and is not a standby.
    expect(await (await fetch(`${atLeader}/readyz?role=leader`)).text()).toMatch(/"name":"broker","ok":false/)
  })

  it('forwards nothing to an address that only the database names', async () => {
    await standbyIsThere()
    let asked = 0
    const thief = createServer((_request, response) => {
      asked += 1
      response.end()
    })
    await new Promise<void>((resolve) => thief.listen(0, '127.0.0.1', resolve))
    const { name } = await lease()
    const root = running.find((each) => each.name !== name)?.root ?? ''
    const own = await server.query<{ url: string }>('select url from headroom.lease')
    const setUrl = (url: string) => server.query('update headroom.lease set url = $1', [url])
    await setUrl(`http://127.0.0.1:${(thief.address() as AddressInfo).port}`)
    await expect
      .poll(async () => (await fetch(`${root}/readyz`)).text())
      .toContain(`${name} is becoming the leader`)
    const read = fetch(`${root}/api/v1/nodes`, { signal: AbortSignal.timeout(500) })
    await expect(read).rejects.toThrow('timeout')
    expect(asked).toBe(0)
    await setUrl(own[0]?.url ?? '')
    await standbyIsThere()
    thief.close()
  })

  it('refuses a controller with another key of secrets when it starts', async () => {
    const folder = newFolder()
    const { code, stderr } = await headroom(['serve'], {
      env: {
        CONTROLLER_STORE_URL: server.url,
        CONTROLLER_HTTP_PORT: '0',
        CONTROLLER_NAME: 'c',
        CONTROLLER_NATS_URL: 'nats://127.0.0.1:9',
        CONTROLLER_DATA_DIR: folder,
      },
    })
    expect(code).toBe(1)
    expect(stderr).toContain(`${join(folder, 'secrets.key')} is not the key of the other controllers`)
  })

  it('hands over when an operator asks for it, and answers every request meanwhile', async () => {
    const { refused, timedOut } = load
    const gaps: number[] = []
    for (let i = 0; i < HANDOVERS; i++) {
      await standbyIsReady()
      const was = await lease()
      const to = running.find(({ name }) => name !== was.name)?.name ?? ''
      await load.nextAcknowledgement()
      load.takeLongestGapMs()
      const { code, stdout, stderr } = await headroom(['leader', 'resign', '--to', to], {
        env: { CONTROLLER_STORE_URL: server.url },
      })
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout).toMatch(
        new RegExp(`^${to} became the leader with epoch ${was.epoch + 1}, \\d+ ms after`),
      )
      await load.nextAcknowledgement()
      gaps.push(load.takeLongestGapMs())
    }
    await load.check()
    console.log(
      `${HANDOVERS} planned handovers: longest gap between acknowledgements ` +
        `${gaps.map(Math.round).join(', ')} ms; ${load.refused - refused} answers other than 201, ` +
        `${load.timedOut - timedOut} without an answer in time`,
    )
    expect(load.refused).toBe(refused)
  })

  it('shows who leads and who can take over', async () => {
    await standbyIsThere()
    const env = { CONTROLLER_STORE_URL: server.url }
    const { name } = await lease()
    const shown = await headroom(['leader', 'show', '-o', 'json'], { env })
    const other = running.find((each) => each.name !== name)?.name
    await expect
      .poll(
        async () => JSON.parse((await headroom(['leader', 'show', '-o', 'json'], { env })).stdout) as unknown,
      )
      .toMatchObject([
        { name, role: 'leader' },
        { name: other, role: 'standby' },
      ])
    expect(shown.code).toBe(0)
    const refused = await headroom(['leader', 'resign', '--to', 'x'], { env })
    expect([refused.code, refused.stderr]).toEqual([
      1,
      `headroom: x is not a standby. Standbys: ${other ?? ''}.\n`,
    ])
    const metrics = (root: string) => fetch(`${root}/metrics`).then((answer) => answer.text())
    await expect
      .poll(async () => metrics((await leader()).root), { timeout: 30_000 })
      .toMatch(/\nheadroom_controller_leads 1\n[^]*\nheadroom_standbys 1\n/)
    const changes = await fetch(
      `${(await leader()).root}/api/v1/events?kind=leader_changed&limit=1&order=newest`,
    )
    expect(await changes.json()).toMatchObject({
      items: [{ data: { leader: name, before: other, reason: 'resigned', epoch: (await lease()).epoch } }],
    })
    const summary = await fetch(`${(await leader()).root}/api/v1/summary`)
    expect(await summary.json()).toMatchObject({ controllers: { leader: (await lease()).name, standbys: 1 } })
  })

  it('hands over through the address of the standby', async () => {
    await standbyIsReady()
    const was = await lease()
    const standby = running.find(({ name }) => name !== was.name)
    const to = standby?.name ?? ''
    const args = ['--server', standby?.root ?? '']
    const shown = async () => {
      const { stdout } = await headroom(['leader', 'show', '-o', 'json', ...args])
      return JSON.parse(stdout) as unknown
    }
    await expect.poll(shown).toMatchObject([
      { name: was.name, role: 'leader', epoch: was.epoch },
      { name: to, role: 'standby', lag_ms: expect.any(Number), not_ready: null },
    ])
    const { code, stdout, stderr } = await headroom(['leader', 'resign', '--to', to, ...args])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(new RegExp(`^${to} became the leader with epoch ${was.epoch + 1}, \\d+ ms after`))
    await standbyIsThere()
    const audit = await fetch(`${standby?.root ?? ''}/api/v1/audit?action=resignLeader`)
    expect(await audit.json()).toMatchObject({ items: [{ action: 'resignLeader', outcome: 'accepted' }] })
    await load.check()
  })
})
