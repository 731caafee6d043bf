/** Two controllers on one PostgreSQL store under load, each behind proxies that can cut it off. */
import { join } from 'node:path'
import { expect } from 'vitest'
import { viewLeader } from '../../controller/adapters/postgres/leader-commands.ts'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { handoverRefusal } from '../../controller/ports/handover.ts'
import { controllerOn, fillStore, newFolder, type ControllerOn } from '../durability/controller-on.ts'
import { freePort } from '../support/free-port.ts'
import type { Environment } from '../support/live-cluster.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { Load, Supervisor, type LoadOptions } from './load.ts'

export const CONTROLLERS = ['a', 'b']

export interface Running {
  readonly name: string
  /** Of its clients and of the other controller. */
  readonly root: string
  readonly controller: ControllerOn
  readonly supervisor: Supervisor
  readonly toDatabase: TcpProxy
  readonly fromClients: TcpProxy
}

export interface LeaseRow {
  readonly name: string
  readonly epoch: number
}

export interface PairOptions {
  readonly leaseMs: number
  /** Pending tasks that are there at the start. */
  readonly openTasks: number
  readonly load?: LoadOptions
  /** Of each controller, by its name. */
  readonly envOf?: (name: string) => Environment
  readonly server?: PostgresServer
}

export class Pair {
  readonly server: PostgresServer
  readonly running: readonly Running[]
  readonly load: Load

  private constructor(server: PostgresServer, running: readonly Running[], load: LoadOptions) {
    this.server = server
    this.running = running
    this.load = new Load(
      running.map(({ root }) => root),
      load,
    )
  }

  static async start({
    leaseMs,
    openTasks,
    load = {},
    envOf = () => ({}),
    server,
  }: PairOptions): Promise<Pair> {
    const database = server ?? (await PostgresServer.start())
    await fillWith(openTasks, database)
    const env = {
      CONTROLLER_SECRETS_KEY_FILE: join(newFolder(), 'secrets.key'),
      CONTROLLER_LEASE_MS: String(leaseMs),
    }
    const running = await Promise.all(
      CONTROLLERS.map((name) => controllerNamed(name, database, { ...env, ...envOf(name) })),
    )
    for (const { supervisor } of running) await supervisor.begin()
    const pair = new Pair(database, running, load)
    pair.load.begin()
    await pair.load.nextAcknowledgement()
    return pair
  }

  async end(): Promise<void> {
    for (const { toDatabase, fromClients } of this.running)
      for (const cut of [toDatabase, fromClients]) cut.heal()
    await this.load.end()
    for (const { supervisor } of this.running) await supervisor.end()
    for (const { toDatabase, fromClients } of this.running)
      for (const proxy of [toDatabase, fromClients]) await proxy.end()
    await this.server.remove()
  }

  async lease(): Promise<LeaseRow> {
    const [row] = await this.server.query<{ name: string; epoch: string }>(
      'select lease.name, leader.epoch from headroom.lease, headroom.leader',
    )
    return { name: row?.name ?? '', epoch: Number(row?.epoch) }
  }

  async leader(): Promise<Running> {
    const { name } = await this.lease()
    const found = this.running.find((each) => each.name === name)
    if (found === undefined) throw new Error(`${name} leads, which was not started`)
    return found
  }

  /** Of the one that does not lead. */
  async standby(): Promise<Running> {
    const leads = await this.leader()
    return this.running.find((each) => each !== leads) as Running
  }

  /** The other one is a standby. */
  async standbyIsThere(): Promise<void> {
    await expect.poll(() => this.#standbys(), { timeout: 60_000 }).toBe(1)
  }

  /** A handover to it is accepted. */
  async standbyIsReady(): Promise<void> {
    await this.standbyIsThere()
    await expect.poll(async () => handoverRefusal(await viewLeader(this.server.place), null)).toBe(null)
  }

  async #standbys(): Promise<number> {
    const { name } = await this.lease()
    const others = this.running.filter((each) => each.name !== name)
    const answers = await Promise.all(
      others.map(({ root }) => fetch(`${root}/readyz`).then((answer) => answer.text(), String)),
    )
    return answers.filter((text) => text.includes(`standby: ${name} leads`)).length
  }
}

/** Pending tasks of 8,000 MiB and more. */
export async function fillWith(openTasks: number, server: PostgresServer): Promise<void> {
  if (openTasks === 0) return
  const store = createPostgresStore({ place: server.place, markBase: join(newFolder(), 'postgres') })
  await fillStore('', { nodes: 0, openTasks }, store)
}

async function controllerNamed(name: string, server: PostgresServer, env: Environment): Promise<Running> {
  const port = await freePort()
  const [toDatabase, fromClients] = [await TcpProxy.start(server.port), await TcpProxy.start(port)]
  const root = `http://127.0.0.1:${fromClients.port}`
  const controller = controllerOn(newFolder(), {
    CONTROLLER_STORE_URL: server.urlAt(toDatabase.port),
    CONTROLLER_HTTP_PORT: String(port),
    CONTROLLER_ADVERTISED_URL: root,
    CONTROLLER_NAME: name,
    ...env,
  })
  const supervisor = new Supervisor(controller, `http://127.0.0.1:${port}`)
  return { name, root, controller, supervisor, toDatabase, fromClients }
}
