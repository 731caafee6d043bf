/**
 * Production controllers whose store is set back, served over HTTP, with the page if it is built; virtual
 * time advances by itself.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { createAccess } from '../../controller/api/auth/access.ts'
import { newSecret } from '../../controller/api/auth/token-secrets.ts'
import { createApi } from '../../controller/api/server.ts'
import type { Role } from '../../controller/model/role.ts'
import { MAPPED_HOST } from './browser.ts'
import { restored, SetBackWorld, type SubmittedTask } from './set-back-world.ts'

const NAMES = ['n1', 'n2', 'n3']
/**
 * Virtual milliseconds per step, and real ones between two steps: time runs ten times as fast as real time.
 */
const STEP_MS = 20
const STEP_EVERY_MS = 2
/** Nodes report within this time. */
const REPORTED_MS = 13_000

export interface SetBackOptions {
  /** Folder of the page; if omitted, no page is served. */
  readonly uiDir?: string
  /** Servers that stop before the store is set back. */
  readonly silent?: readonly string[]
  /** Tasks that start in the lost time: the backup does not contain them. */
  readonly later?: readonly SubmittedTask[]
  /** Ends the task `before` in the lost time: it runs in the backup, and its node no longer has it. */
  readonly isBeforeEnded?: boolean
}

export class ServedSetBack {
  readonly world: SetBackWorld
  readonly #uiDir: string | undefined
  #app: FastifyInstance | null = null
  #url = ''
  #isPumped = false
  #pumping: Promise<void> = Promise.resolve()

  private constructor(world: SetBackWorld, uiDir: string | undefined) {
    this.world = world
    this.#uiDir = uiDir
  }

  /** Address of the current controller, which stays the same after it was set back. */
  get url(): string {
    return this.#url
  }

  /** The controller after `headroom restore`: the backup contains only the task `before`. */
  static async restored({
    uiDir,
    silent = [],
    later = [],
    isBeforeEnded = false,
  }: SetBackOptions): Promise<ServedSetBack> {
    const world = await SetBackWorld.of(NAMES)
    world.submit({ id: 'before', vramMib: 1_000 })
    await world.pass(10_000)
    const backup = await world.stored()
    for (const fields of later) world.submit(fields)
    if (isBeforeEnded) world.controller.commands.cancelTask('before', 'test', () => {})
    await world.pass(10_000)
    for (const name of silent) world.stopServer(name)
    await world.setBack(restored(backup))
    await world.pass(REPORTED_MS)
    const served = new ServedSetBack(world, uiDir)
    await served.#serve()
    return served
  }

  /** The store loses its latest events without a restore: nodes are ahead of it. */
  async loseLatestEvents(): Promise<void> {
    await this.#stop()
    const stored = await this.world.stored()
    this.world.submit({ id: 'lost', vramMib: 100 })
    await this.world.pass(10_000)
    await this.world.setBack(stored)
    await this.world.pass(REPORTED_MS)
    await this.#serve()
  }

  /** From the first token, every caller must send one. Returns the secret. */
  token(role: Role): Promise<string> {
    const { id, secret, hash } = newSecret()
    const record = {
      id,
      name: `${role}-name`,
      role,
      secretHash: hash,
      createdAt: 0,
      createdBy: null,
      expiresAt: null,
      lastUsedAt: null,
    }
    return new Promise((resolve) => this.world.controller.access.create(record, () => resolve(secret)))
  }

  async end(): Promise<void> {
    await this.#stop()
    await this.world.stopController()
  }

  async #serve(): Promise<void> {
    const { commands, views, logs, events, access: book } = this.world.controller
    const access = createAccess({ book, now: Date.now, allowedHosts: [MAPPED_HOST] })
    const uiDir = this.#uiDir === undefined ? {} : { uiDir: this.#uiDir }
    this.#app = createApi({
      commands,
      views,
      logs,
      events,
      access,
      version: '0.0.0-test',
      inVirtualTime: true,
      ...uiDir,
    })
    this.#url = await this.#app.listen({
      host: '127.0.0.1',
      port: this.#url === '' ? 0 : Number(new URL(this.#url).port),
    })
    this.#isPumped = true
    this.#pumping = this.#pump()
  }

  async #pump(): Promise<void> {
    while (this.#isPumped) {
      await this.world.pass(STEP_MS)
      await wait(STEP_EVERY_MS)
    }
  }

  async #stop(): Promise<void> {
    this.#isPumped = false
    await this.#pumping
    await this.#app?.close()
  }
}
