/**
 * Two controllers with short leases, a broker, two GPU servers of real processes, and clients over REST and
 * over the broker. Each loop takes the lead from the leader, and then judges: by the files that tasks write,
 * by the messages of the broker, by the acknowledgements, and by the fence in the database.
 */
import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { CONTROLLERS, Pair, type Running } from '../ha/pair.ts'
import { FROM_SOURCES_ENV } from '../support/headroom-command.ts'
import { LiveCluster } from '../support/live-cluster.ts'
import { BOTH, TcpProxy, type Direction } from '../support/tcp-proxy.ts'
import { BusClient } from './bus-client.ts'
import { EventReaders } from './event-readers.ts'
import { WireWitness } from './wire-witness.ts'

/** Of 20 loops. A stopped leader continues after the takeover. */
const STRIKES = {
  kill: 4,
  stop: 2,
  'stop in a commit': 3,
  /** A command of its term arrives after the takeover. */
  'stop at a command': 4,
  /** The leader is cut off from PostgreSQL, in one direction or both; clients and servers still reach it. */
  'cut to': 3,
  'cut from': 3,
  'cut both': 1,
} as const
export type Strike = keyof typeof STRIKES
const DRAWN = Object.entries(STRIKES).flatMap(([strike, weight]) =>
  Array.from({ length: weight }, () => strike as Strike),
)

const LEASE_MS = 500
const SERVERS = ['storm-0', 'storm-1']
const INVENTORY = JSON.stringify({ gpus: [{ model: 'declared', vram_mib: 8_192, swap: 'pinned-gen4' }] })
/** Between an answer and the next submission of one client. */
const PAUSE_MS = 800
const PATIENCE_MS = 500
/** A commit or a command of the leader. */
const MESSAGE_WITHIN_MS = 2_000
const NAMED_WITHIN_MS = 10_000
const AGAIN_WITHIN_MS = 60_000
const ENDED_WITHIN_MS = 120_000
/** Tasks that wait for their end: more slow the next loop down. */
const MAX_OPEN = 400

export interface Loop {
  readonly strike: Strike
  readonly epoch: number
  /** From the strike to the next epoch, and to the next acknowledgement. */
  readonly leadMs: number
  readonly acknowledgedMs: number
  readonly tookMs: number
}

interface Task {
  readonly state: string
}

interface Parts {
  readonly cluster: LiveCluster
  readonly pair: Pair
  readonly bus: BusClient
  readonly wire: WireWitness
  readonly toBroker: ReadonlyMap<string, TcpProxy>
  readonly runs: string
}

export class LeaderStorm {
  readonly #cluster: LiveCluster
  readonly #pair: Pair
  readonly #bus: BusClient
  readonly #wire: WireWitness
  /** Between controllers and broker, by the name of the controller. */
  readonly #toBroker: ReadonlyMap<string, TcpProxy>
  readonly #readers: EventReaders
  readonly #runs: string
  /** Tasks that have ended, by name. */
  readonly #ended = new Set<string>()
  readonly #violations: string[] = []
  #epoch = 0

  private constructor({ cluster, pair, bus, wire, toBroker, runs }: Parts) {
    this.#cluster = cluster
    this.#pair = pair
    this.#bus = bus
    this.#wire = wire
    this.#toBroker = toBroker
    this.#runs = runs
    this.#readers = new EventReaders(pair.running.map(({ root }) => root))
  }

  static async start(): Promise<LeaderStorm> {
    const cluster = await LiveCluster.startBrokerAlone()
    const runs = cluster.path('runs')
    mkdirSync(runs)
    // Each attempt writes as a separate user, which cannot write to the file of another one.
    chmodSync(runs, 0o777)
    const commandOf = (name: string) => ['mktemp', join(runs, `${name}.XXXXXX`)]
    const toBroker = new Map<string, TcpProxy>()
    for (const name of CONTROLLERS)
      toBroker.set(name, await TcpProxy.start(Number(new URL(cluster.natsUrl).port)))
    const envOf = (name: string) => ({
      ...FROM_SOURCES_ENV,
      CONTROLLER_NATS_URL: `nats://127.0.0.1:${toBroker.get(name)?.port}`,
      CONTROLLER_STORE_KIND: 'trial',
    })
    const wire = await WireWitness.join(cluster.natsUrl)
    const pair = await Pair.start({
      ...{ leaseMs: LEASE_MS, openTasks: 0, envOf },
      load: {
        ...{ pauseMs: PAUSE_MS, patienceMs: PATIENCE_MS },
        task: (name) => ({ vram_mib: 100, command: commandOf(name) }),
      },
    })
    cluster.url = pair.running[0]?.root ?? ''
    for (const name of SERVERS) await cluster.startServer(name, INVENTORY)
    const bus = new BusClient(cluster.natsUrl, commandOf, PAUSE_MS)
    bus.begin()
    return new LeaderStorm({ cluster, pair, bus, wire, toBroker, runs })
  }

  get figures() {
    const { obeyed, late } = this.#wire
    const { load } = this.#pair
    const overBus = this.#bus.ids.size
    const acknowledged = load.acknowledged + overBus
    return { acknowledged, overBus, ended: this.#ended.size, obeyed, late }
  }

  /** @param seed draws the strike and its moments */
  async loop(seed: string): Promise<Loop> {
    const from = performance.now()
    const random = createSeededRandom(seed).stream('storm')
    const strike = DRAWN[Math.floor(random() * DRAWN.length)] as Strike
    await this.#pair.standbyIsThere()
    await delay(random() * 200)
    const before = await this.#pair.lease()
    if (before.epoch < this.#epoch) this.#violations.push(`epoch ${before.epoch} after ${this.#epoch}`)
    const undo = await this.#strike(strike, await this.#pair.leader())
    const struckAt = performance.now()
    const epoch = await this.#epochAfter(before.epoch)
    const leadMs = performance.now() - struckAt
    this.#epoch = epoch
    await this.#pair.load.nextAcknowledgement()
    const acknowledgedMs = performance.now() - struckAt
    await delay(random() * 200)
    undo()
    await this.#deliverLate(epoch)
    await this.#judgeTasks()
    while (this.#open().length > MAX_OPEN) await this.#judgeTasks()
    return { strike, epoch, leadMs, acknowledgedMs, tookMs: performance.now() - from }
  }

  /** @returns what undoes it */
  async #strike(strike: Strike, { name, controller, toDatabase }: Running): Promise<() => void> {
    const { member } = controller
    const stop = () => member.signal('SIGSTOP')
    const goOn = () => member.signal('SIGCONT')
    const cut = (directions: readonly Direction[]) => {
      toDatabase.cut(directions)
      return () => toDatabase.heal()
    }
    switch (strike) {
      case 'kill':
        member.signal('SIGKILL')
        return () => {}
      case 'stop':
        stop()
        return goOn
      case 'stop in a commit':
        // It sends none if it has just lost the lead.
        if (!(await toDatabase.onSent('commit', MESSAGE_WITHIN_MS, stop))) stop()
        return goOn
      case 'stop at a command':
        return this.#stopAtCommand(this.#toBroker.get(name) as TcpProxy, stop, goOn)
      case 'cut to':
        return cut(['to'])
      case 'cut from':
        return cut(['from'])
      case 'cut both':
        return cut(BOTH)
    }
  }

  async #stopAtCommand(toBroker: TcpProxy, stop: () => void, goOn: () => void): Promise<() => void> {
    const isHeld = await toBroker.onSent('"op":"start"', MESSAGE_WITHIN_MS, () => {
      toBroker.cut(['to'])
      stop()
    })
    if (!isHeld) stop()
    return () => {
      toBroker.heal()
      goOn()
    }
  }

  async #epochAfter(before: number): Promise<number> {
    const until = performance.now() + AGAIN_WITHIN_MS
    for (;;) {
      const { epoch } = await this.#pair.lease()
      if (epoch > before) return epoch
      if (performance.now() > until) throw new Error(`no epoch after ${before} within ${AGAIN_WITHIN_MS} ms`)
      await delay(10)
    }
  }

  /** Once a server has seen this epoch. One whose request the former leader did not answer sees it late. */
  async #deliverLate(epoch: number): Promise<void> {
    const until = performance.now() + NAMED_WITHIN_MS
    while (!this.#wire.isNamed(epoch) && performance.now() < until) await delay(10)
    this.#wire.deliverLate(epoch)
  }

  #open(): readonly (readonly [name: string, id: string])[] {
    return [...this.#pair.load.ids, ...this.#bus.ids].filter(([name]) => !this.#ended.has(name))
  }

  /** Every acknowledged task is known, and none has started twice. */
  async #judgeTasks(): Promise<void> {
    for (const [name, id] of this.#open()) {
      const task = await this.#task(id)
      if (task === null) this.#violations.push(`${name} (${id}) was acknowledged, and is lost`)
      if (task !== null && !FINAL.has(task.state)) continue
      this.#ended.add(name)
      const files = this.#files().get(name) ?? []
      if (task?.state !== 'completed' || files.length !== 1)
        this.#violations.push(`${name} (${id}) is ${task?.state}, and ran ${files.length} times`)
      for (const file of files) rmSync(join(this.#runs, file))
    }
    for (const [name, files] of this.#files()) {
      if (this.#ended.has(name)) this.#violations.push(`${name} started again after its end`)
      else if (files.length > 1) this.#violations.push(`${name} ran ${files.length} times`)
    }
  }

  /** One for each run, by the name of its task. */
  #files(): ReadonlyMap<string, readonly string[]> {
    return Map.groupBy(readdirSync(this.#runs), (file) => file.slice(0, file.lastIndexOf('.')))
  }

  /** Null: it is not stored. A controller that does not lead may learn of it later. */
  async #task(id: string): Promise<Task | null> {
    for (let tries = 0; ; tries++) {
      const { root } = this.#pair.running[tries % 2] as Running
      const signal = AbortSignal.timeout(1_000)
      const answer = await fetch(`${root}/api/v1/tasks/${id}`, { signal }).catch(() => null)
      if (answer?.status === 404 && !(await this.#isStored(id))) return null
      const task = answer?.ok === true ? await (answer.json() as Promise<Task>).catch(() => null) : null
      if (task !== null) return task
      await delay(20)
    }
  }

  async #isStored(id: string): Promise<boolean> {
    const rows = await this.#pair.server.query('select from headroom.tasks where id = $1', [id])
    return rows.length > 0
  }

  /** Of all loops so far. */
  get violations(): readonly string[] {
    return [...this.#violations, ...this.#wire.violations, ...this.#readers.violations]
  }

  /** After the last loop: every task ends, and the readers have seen every event. */
  async settle(): Promise<void> {
    await this.#pair.load.end()
    await this.#bus.end()
    const until = performance.now() + ENDED_WITHIN_MS
    while (this.#open().length > 0) {
      await this.#judgeTasks()
      if (performance.now() < until) continue
      for (const [name] of this.#open()) this.#violations.push(`${name} has not ended`)
      return
    }
    const last = await this.#lastEvent()
    while (this.#readers.lastSeq < last && performance.now() < until) await delay(20)
    if (this.#readers.lastSeq < last)
      this.#violations.push(`a reader saw event ${this.#readers.lastSeq} of ${last}`)
  }

  async #lastEvent(): Promise<number> {
    const [row] = await this.#pair.server.query<{ seq: string }>(
      'select max(seq) as seq from headroom.events',
    )
    return Number(row?.seq)
  }

  /** Output of all processes. */
  get output(): string {
    const members = [
      ...this.#pair.running.map(({ controller }) => controller.member),
      ...this.#cluster.members,
    ]
    return members.map(({ name, output }) => `── ${name}\n${output}`).join('\n')
  }

  async end(): Promise<void> {
    await this.#readers.end()
    await this.#bus.end()
    await this.#pair.end()
    for (const proxy of this.#toBroker.values()) await proxy.end()
    await this.#wire.end()
    await this.#cluster.end()
  }
}

const FINAL = new Set(['completed', 'failed', 'cancelled', 'lost'])
