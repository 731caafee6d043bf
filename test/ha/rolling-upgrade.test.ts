/**
 * Two controllers of an earlier version on PostgreSQL are replaced by those of this version, one after the
 * other, while clients with both addresses submit tasks that a GPU server runs.
 */
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient, type HeadroomClient } from '../../clients/typescript/client.ts'
import { viewLeader } from '../../controller/adapters/postgres/leader-commands.ts'
import { handoverRefusal } from '../../controller/ports/handover.ts'
import { newFolder } from '../durability/controller-on.ts'
import { checkOut, commitBefore, type EarlierVersion } from '../support/earlier-version.ts'
import { freePort } from '../support/free-port.ts'
import { FROM_SOURCES_ENV } from '../support/headroom-command.ts'
import { headroom, headroomIn, LiveCluster, until, type Member } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { leavesMark } from '../faults/fault-cluster.ts'

/** Its commit added a table and functions of the database. */
const STEP = 'docs/decisions/0152-uploaded-files-in-the-database.md'
const INVENTORY = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'
const CLIENTS = 3
/** Between two requests of a client: the GPU server starts a process for each task. */
const PAUSE_MS = 150

type Name = 'a' | 'b'

const why = whyNoPostgres() ?? whyNoNatsServer()
const earlier = why === null ? commitBefore(STEP) : null
describe.skipIf(earlier === null)('a rolling upgrade over a change of the schema', () => {
  let server: PostgresServer
  let cluster: LiveCluster
  let version: EarlierVersion
  let members: Record<Name, Member>
  let urls: Record<Name, string>
  let environments: Record<Name, Readonly<Record<string, string>>>
  beforeAll(async () => {
    server = await PostgresServer.start()
    version = checkOut(earlier ?? '')
    const env = {
      CONTROLLER_STORE_URL: server.url,
      CONTROLLER_SECRETS_KEY_FILE: join(newFolder(), 'secrets.key'),
      CONTROLLER_LEASE_MS: '2000',
    }
    cluster = await LiveCluster.start({ ...env, CONTROLLER_NAME: 'a', NODE_OPTIONS: '' }, version.root)
    const port = await freePort()
    urls = { a: cluster.url, b: `http://127.0.0.1:${port}` }
    const common = {
      ...{ ...env, CONTROLLER_NATS_URL: cluster.natsUrl, CONTROLLER_HTTP_HOST: '127.0.0.1' },
      ...{ CONTROLLER_STORE_KIND: 'trial', LOG_LEVEL: 'warn' },
    }
    const of = (name: Name, httpPort: string, folder: string) => ({
      ...{ ...common, CONTROLLER_NAME: name, CONTROLLER_HTTP_PORT: httpPort },
      CONTROLLER_DATA_DIR: cluster.path(folder),
    })
    environments = {
      a: of('a', new URL(cluster.url).port, 'controller'),
      b: of('b', String(port), 'controller-b'),
    }
    members = {
      a: cluster.controller,
      b: cluster.addMember('controller b', headroomIn(version.root, 'serve'), environments.b),
    }
    await members.b.start(() => isReady('b'))
    await cluster.startServer('gpu-1', INVENTORY)
  })
  afterAll(async () => {
    await cluster?.end()
    await server?.remove()
    version?.remove()
  })

  const isReady = (name: Name, query = '') =>
    fetch(`${urls[name]}/readyz${query}`, { signal: AbortSignal.timeout(1_000) }).then(
      (answer) => answer.ok,
      () => false,
    )

  /** Stops the controller of the earlier version, and starts one of this version in its place. */
  async function replace(name: Name): Promise<void> {
    await members[name].end('SIGTERM')
    const env = { ...FROM_SOURCES_ENV, ...environments[name] }
    members[name] = cluster.addMember(`new controller ${name}`, headroom('serve'), env)
    await members[name].start(() => isReady(name))
  }

  /** @param by command line of the version of the leader */
  async function handOver(to: Name, by: typeof headroom): Promise<void> {
    await expect.poll(async () => handoverRefusal(await viewLeader(server.place), to)).toBe(null)
    const [file = '', ...args] = by('leader', 'resign', '--to', to)
    const env = { ...process.env, CONTROLLER_STORE_URL: server.url }
    await promisify(execFile)(file, args, { env })
    await until(`${to} leads`, () => isReady(to, '?role=leader'))
  }

  it('refuses no request and runs each task once, also when the earlier version leads again', async () => {
    const runs = cluster.path('runs')
    mkdirSync(runs)
    chmodSync(runs, 0o777)
    const load = new Clients(Object.values(urls).join(), runs)
    load.begin()
    const byEarlier = (...args: readonly string[]) => headroomIn(version.root, ...args)
    await load.more()

    await replace('b')
    await load.more()
    await handOver('b', byEarlier)
    await load.more()
    // Its functions of the database are those of this version until it leads.
    await handOver('a', headroom)
    await load.more()
    await handOver('b', byEarlier)
    await replace('a')
    await load.more()
    await handOver('a', headroom)
    await load.more()

    const ids = await load.end()
    expect(load.refused).toEqual([])
    const client = createClient({ url: urls.a, token: null })
    await until('all tasks have ended', async () => {
      const { items } = await client.tasks.list({ state: 'completed', limit: 1 })
      const open = [...ids.values()].map((id) => client.tasks.get(id))
      return items.length > 0 && (await Promise.all(open)).every(({ state }) => state === 'completed')
    })
    const found: string[] = []
    for await (const { name } of client.tasks.each({ limit: 200 })) found.push(name)
    expect(found).toHaveLength(ids.size)
    expect(new Set(found)).toEqual(new Set(ids.keys()))
    const marks = readdirSync(runs).map((name) => [name, readFileSync(join(runs, name), 'utf8')])
    const once = [...ids.keys()].map((name) => [name, `${name}\n`])
    expect(Object.fromEntries(marks)).toEqual(Object.fromEntries(once))
    console.log(`a rolling upgrade: ${ids.size} tasks, none refused, none lost, each run once`)
  })
})

/** Clients with both addresses that submit tasks and read them. */
class Clients {
  readonly #client: HeadroomClient
  readonly #runs: string
  readonly #ids = new Map<string, string>()
  readonly refused: unknown[] = []
  #isEnding = false
  #running: Promise<void>[] = []

  constructor(url: string, runs: string) {
    this.#client = createClient({ url, token: null, environment: {} })
    this.#runs = runs
  }

  begin(): void {
    this.#running = Array.from({ length: CLIENTS }, (_, client) => this.#submitAll(client))
  }

  async #submitAll(client: number): Promise<void> {
    for (let at = 0; !this.#isEnding; at++) {
      const name = `task-${client}-${at}`
      const command = leavesMark(join(this.#runs, name), name)
      try {
        const { id } = await this.#client.tasks.submit({ name, vram_mib: 100, command: [...command] })
        this.#ids.set(name, id)
        await this.#client.tasks.get(id)
      } catch (error) {
        this.refused.push(error)
      }
      await delay(PAUSE_MS)
    }
  }

  /** Resolves after a few more answers, or a refusal. */
  async more(): Promise<void> {
    const enough = this.#ids.size + 2 * CLIENTS
    await until('more tasks are acknowledged', () => this.#ids.size >= enough || this.refused.length > 0)
  }

  /** Resolves with the id of each acknowledged task, by name. */
  async end(): Promise<ReadonlyMap<string, string>> {
    this.#isEnding = true
    await Promise.all(this.#running)
    return this.#ids
  }
}
