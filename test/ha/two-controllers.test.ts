/**
 * Two controllers on one PostgreSQL store under load, while the one that leads is killed, or stopped for
 * longer than its lease: the other one takes over, and nothing acknowledged is lost.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { viewLeader } from '../../controller/adapters/postgres/leader-commands.ts'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { handoverRefusal } from '../../controller/ports/handover.ts'
import { controllerOn, figure, fillStore, newFolder, type ControllerOn } from '../durability/controller-on.ts'
import { headroom } from '../support/headroom-command.ts'
import { freePort } from '../support/free-port.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { Load, Supervisor } from './load.ts'

const LOSSES = figure('HA_LEADER_LOSSES', 1)
const HANDOVERS = figure('HA_HANDOVERS', 1)
const LEASE_MS = figure('HA_LEASE_MS', 2_000)
/** Pending tasks that are there at the start. */
const OPEN_TASKS = figure('HA_OPEN_TASKS', 0)
const FIRST_WITHIN_MS = figure('HA_FIRST_201_WITHIN_MS', 60_000)

interface Running {
  readonly name: string
  readonly root: string
  readonly controller: ControllerOn
  readonly supervisor: Supervisor
}

interface LeaseRow {
  readonly name: string
  readonly epoch: number
}

describe.skipIf(whyNoPostgres() !== null)('two controllers on PostgreSQL', () => {
  let server: PostgresServer
  let running: readonly Running[]
  let load: Load
  beforeAll(async () => {
    server = await PostgresServer.start()
    if (OPEN_TASKS > 0) {
      const store = createPostgresStore({ place: server.place, markBase: join(newFolder(), 'postgres') })
      await fillStore('', { nodes: 0, openTasks: OPEN_TASKS }, store)
    }
    const keyFile = join(newFolder(), 'secrets.key')
    running = await Promise.all(['a', 'b'].map((name) => controllerNamed(name, server.url, keyFile)))
    for (const { supervisor } of running) await supervisor.begin()
    load = new Load(running.map(({ root }) => root))
    load.begin()
    await load.nextAcknowledgement()
  })
  afterAll(async () => {
    await load.end()
    for (const { supervisor } of running) await supervisor.end()
    await server.remove()
  })

  async function lease(): Promise<LeaseRow> {
    const [row] = await server.query<{ name: string; epoch: string }>(
      'select lease.name, leader.epoch from headroom.lease, headroom.leader',
    )
    return { name: row?.name ?? '', epoch: Number(row?.epoch) }
  }

  async function leader(): Promise<Running> {
    const { name } = await lease()
    const found = running.find((each) => each.name === name)
    if (found === undefined) throw new Error(`${name} leads, which was not started`)
    return found
  }

  /** The other one is a standby. */
  async function standbyIsThere(): Promise<void> {
    await expect.poll(() => standbys(), { timeout: 60_000 }).toBe(1)
  }

  /** A handover to it is accepted. */
  async function standbyIsReady(): Promise<void> {
    await standbyIsThere()
    await expect.poll(async () => handoverRefusal(await viewLeader(server.place), null)).toBe(null)
  }

  async function standbys(): Promise<number> {
    const { name } = await lease()
    const others = running.filter((each) => each.name !== name)
    const answers = await Promise.all(
      others.map(({ root }) => fetch(`${root}/readyz`).then((answer) => answer.text(), String)),
    )
    return answers.filter((text) => text.includes(`standby: ${name} leads`)).length
  }

  /** @param lose makes the leader stop leading; resolves with what is to be done once another one leads */
  async function lost(lose: (leader: Running) => Promise<() => void>): Promise<readonly number[]> {
    const times: number[] = []
    for (let i = 0; i < LOSSES; i++) {
      await standbyIsThere()
      await load.nextAcknowledgement()
      const [before, was] = [await leader(), await lease()]
      const from = performance.now()
      const goOn = await lose(before)
      await load.nextAcknowledgement()
      times.push(performance.now() - from)
      const now = await lease()
      expect(now.epoch).toBeGreaterThan(was.epoch)
      expect(now.name).not.toBe(was.name)
      goOn()
    }
    await load.check()
    return times.sort((a, b) => a - b)
  }

  function report(what: string, times: readonly number[]): void {
    const at = (share: number) => Math.round(times[Math.ceil(times.length * share) - 1] ?? 0)
    console.log(
      `the leader was ${what} ${times.length} times (lease ${LEASE_MS} ms, ${OPEN_TASKS} tasks at the ` +
        'start): first 201 after median ' +
        `${at(0.5)} ms, p95 ${at(0.95)} ms, worst ${at(1)} ms; ${load.acknowledged} tasks acknowledged, ` +
        'none lost, none twice',
    )
    expect(at(1)).toBeLessThan(FIRST_WITHIN_MS)
  }

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

  it('loses nothing when the leader is killed', async () => {
    const times = await lost(({ controller }) => {
      controller.member.signal('SIGKILL')
      return Promise.resolve(() => {})
    })
    report('killed (SIGKILL)', times)
  })

  it('loses nothing when the leader is stopped, and does not let it write once it continues', async () => {
    const times = await lost(async ({ controller }) => {
      const { starts, pid } = { starts: controller.member.starts, pid: controller.member.pid }
      controller.member.signal('SIGSTOP')
      await delay(0)
      return () => {
        process.kill(pid, 'SIGCONT')
        expect(controller.member.starts).toBe(starts)
      }
    })
    report('stopped (SIGSTOP) and continued', times)
    // The continued controller has ended its term and is a standby again.
    await standbyIsThere()
  })
})

async function controllerNamed(name: string, storeUrl: string, keyFile: string): Promise<Running> {
  const port = await freePort()
  const controller = controllerOn(newFolder(), {
    CONTROLLER_STORE_URL: storeUrl,
    CONTROLLER_HTTP_PORT: String(port),
    CONTROLLER_NAME: name,
    CONTROLLER_SECRETS_KEY_FILE: keyFile,
    CONTROLLER_LEASE_MS: String(LEASE_MS),
  })
  const root = `http://127.0.0.1:${port}`
  return { name, root, controller, supervisor: new Supervisor(controller, root) }
}
