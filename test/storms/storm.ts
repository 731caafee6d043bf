/**
 * One storm: a cluster of real processes whose parts are killed, stopped past the lease and restarted while
 * tasks run that record their run times. Violations are detected from those files and from the controller's
 * acknowledgements, not from its reports.
 */
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { LiveCluster, until, type Member } from '../support/live-cluster.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'

export interface StormPlan {
  readonly seed: string
  readonly seconds: number
  readonly kills: number
  readonly tasks: number
  /** Keeps what is needed to find the cause of a violation. */
  readonly evidence: string
}

export interface StormVerdict {
  readonly servers: number
  readonly kills: Readonly<Record<Blow, number>>
  readonly acknowledged: number
  readonly ends: Readonly<Record<string, number>>
  /** Attempts that wrote ticks: without them the storm proves nothing. */
  readonly attempts: number
  /** Acknowledged tasks that the controller does not know, or that never ended. */
  readonly lost: readonly string[]
  /** Tasks with two concurrent attempts, or with an attempt after a completion that could be reported. */
  readonly twice: readonly string[]
  /** Tasks with `on_node_loss: requeue` that completed while their server was stopped, and ran again. */
  readonly repeated: readonly string[]
  readonly withoutReason: readonly string[]
  /** From the broker's first accepted connection until the last server contact, for each kill. */
  readonly reconnectMs: readonly number[]
}

type Blow = 'controller' | 'broker' | 'server' | 'stop'

interface Task {
  readonly id: string
  readonly state: string
  readonly end_reason: string | null
}

interface Seen {
  readonly name: string
  readonly last_seen_at: string
}

const LEASE_SECONDS = 15
/** Longer than the lease with its 5 % and the margin, and shorter than the second lease. */
const STOPPED_MS = 24_000
const INVENTORY = JSON.stringify({ gpus: [{ model: 'declared', vram_mib: 8_192, swap: 'pinned-gen4' }] })
/** Overcommit is off, so that attempts stop only because of their lease. */
const CONFIG = {
  run_lease_seconds: LEASE_SECONDS,
  heartbeat_seconds: 1,
  safety_reserve_mib: 0,
  max_requeues: null,
}
/**
 * Ticks of 100 ms, each with the time in nanoseconds, then a mark; one file per attempt, TASK.SERVER.RANDOM.
 * The working directory is below the server's state folder, which has its name.
 */
const TICKS =
  's="${PWD%/work/*}"; f="$0.${s##*/}.$(cat /proc/sys/kernel/random/uuid)"; i=0; while [ $i -lt $1 ]; ' +
  'do date +%s%N >> "$f"; sleep 0.1; i=$((i+1)); done; echo done >> "$f"'
/** A result of the last moment before a stop may not have left the server. */
const REPORT_MS = 1_000
const POLICIES = ['requeue', 'wait', 'fail'] as const
const SETTLE_MS = 420_000
const FINAL = new Set(['completed', 'failed', 'cancelled', 'lost'])

export async function runStorm(plan: StormPlan): Promise<StormVerdict> {
  const random = createSeededRandom(plan.seed).stream('storm')
  const cluster = await LiveCluster.start()
  try {
    return await new Storm(cluster, plan, random).run()
  } finally {
    await cluster.end()
  }
}

class Storm {
  readonly #cluster: LiveCluster
  readonly #plan: StormPlan
  readonly #random: () => number
  readonly #ticks: string
  readonly #servers: Member[] = []
  readonly #acknowledged: string[] = []
  readonly #kills: Record<Blow, number> = { controller: 0, broker: 0, server: 0, stop: 0 }
  readonly #reconnectMs: number[] = []
  readonly #pauses: Pause[] = []
  /** Faults that last: a stopped server resumes later. */
  readonly #healing = new Set<Promise<void>>()
  #isOver = false

  constructor(cluster: LiveCluster, plan: StormPlan, random: () => number) {
    this.#cluster = cluster
    this.#plan = plan
    this.#random = random
    this.#ticks = cluster.path('ticks')
    mkdirSync(this.#ticks)
    // Each attempt writes as a separate user.
    chmodSync(cluster.folder, 0o711)
    chmodSync(this.#ticks, 0o777)
  }

  async run(): Promise<StormVerdict> {
    await this.#cluster.send('PUT', '/config', CONFIG)
    const count = 1 + Math.floor(this.#random() * 4)
    for (let i = 0; i < count; i++)
      this.#servers.push(await this.#cluster.startServer(`storm-${i}`, INVENTORY))
    const loading = this.#load()
    await this.#strike()
    this.#isOver = true
    await loading
    await Promise.all(this.#healing)
    return this.#verdict(count)
  }

  /**
   * Submits until there are enough tasks; a request without an answer is repeated with the same key, as
   * clients do.
   */
  async #load(): Promise<void> {
    for (let n = 0; !this.#isOver || n < this.#plan.tasks; n++) {
      const name = `t${n}`
      const ticks = String(5 + Math.floor(this.#random() * 40))
      const task = {
        name,
        vram_mib: 256,
        on_node_loss: policyOf(n),
        command: ['sh', '-c', TICKS, `${this.#ticks}/${name}`, ticks],
      }
      const id = await this.#submit(name, task)
      this.#acknowledged.push(id)
      await sleep((1000 * this.#plan.seconds) / this.#plan.tasks / 2)
    }
  }

  async #submit(key: string, task: object): Promise<string> {
    for (;;) {
      try {
        const answer = await fetch(`${this.#cluster.url}/api/v1/tasks`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', 'Idempotency-Key': `storm-${key}` },
          body: JSON.stringify(task),
        })
        if (answer.ok) return ((await answer.json()) as Task).id
        if (answer.status < 500 && answer.status !== 429)
          throw new Error(`${answer.status} ${await answer.text()}`)
      } catch (error) {
        if (error instanceof Error && /^4\d\d /.test(error.message)) throw error
      }
      await sleep(200)
    }
  }

  async #strike(): Promise<void> {
    const end = performance.now() + 1000 * this.#plan.seconds
    const pauseMs = (1000 * this.#plan.seconds) / this.#plan.kills / 2
    const blows: readonly Blow[] = ['controller', 'broker', 'server', 'stop']
    for (let blow = 0; blow < this.#plan.kills || performance.now() < end; blow++) {
      await sleep(pauseMs * (0.5 + this.#random()))
      // The first four are one of each.
      await this.#one(blows[blow < blows.length ? blow : Math.floor(this.#random() * blows.length)] as Blow)
    }
  }

  async #one(blow: Blow): Promise<void> {
    this.#kills[blow] += 1
    switch (blow) {
      case 'controller':
        await this.#cluster.controller.end('SIGKILL')
        return this.#cluster.startController()
      case 'broker':
        await this.#cluster.broker.end('SIGKILL')
        await this.#cluster.startBroker()
        return this.#heardAgain()
      case 'server':
        return this.#restart(this.#anyServer())
      case 'stop':
        return this.#stop(this.#anyServer())
    }
  }

  #anyServer(): Member | null {
    const running = this.#servers.filter((server) => !this.#stopped.has(server))
    return running[Math.floor(this.#random() * running.length)] ?? null
  }

  readonly #stopped = new Set<Member>()

  async #restart(server: Member | null): Promise<void> {
    if (server === null) return
    await server.end('SIGKILL')
    const before = server.output.length
    await server.start(() => server.output.slice(before).includes('GPU server runs'))
  }

  /** Past the lease, guards and server act on their own; meanwhile other faults happen. */
  async #stop(server: Member | null): Promise<void> {
    if (server === null) return
    this.#stopped.add(server)
    const pause = { server: server.name, from: Date.now(), to: Infinity }
    this.#pauses.push(pause)
    server.signal('SIGSTOP')
    const healing = sleep(STOPPED_MS).then(() => {
      server.signal('SIGCONT')
      pause.to = Date.now()
      this.#stopped.delete(server)
      this.#healing.delete(healing)
    })
    this.#healing.add(healing)
  }

  /** Of the servers that are not stopped; the broker accepts connections from now on. */
  async #heardAgain(): Promise<void> {
    const since = Date.now()
    const names = new Set(
      this.#servers.filter((server) => !this.#stopped.has(server)).map(({ name }) => name),
    )
    if (names.size === 0) return
    let slowest = 0
    await until(
      'every server is heard again',
      async () => {
        const nodes = (await this.#cluster.get<{ readonly items: readonly Seen[] }>('/nodes')).items
        const heard = nodes
          .filter(({ name }) => names.has(name))
          .map(({ last_seen_at: at }) => Date.parse(at) - since)
        slowest = Math.max(...heard)
        return heard.length === names.size && heard.every((ms) => ms >= 0)
      },
      60_000,
    )
    this.#reconnectMs.push(slowest)
  }

  async #verdict(servers: number): Promise<StormVerdict> {
    const tasks = await this.#ended()
    const ends: Record<string, number> = {}
    for (const { state, end_reason: reason } of tasks.values()) {
      const end = `${state}: ${reason ?? 'null'}`
      ends[end] = (ends[end] ?? 0) + 1
    }
    const verdict = {
      servers,
      kills: this.#kills,
      acknowledged: this.#acknowledged.length,
      ends,
      attempts: readdirSync(this.#ticks).length,
      lost: this.#acknowledged.filter((id) => !FINAL.has(tasks.get(id)?.state ?? 'unknown')),
      ...runsAgainIn(this.#ticks, this.#pauses),
      withoutReason: [...tasks.values()]
        .filter(({ end_reason: reason }) => reason === null)
        .map(({ id }) => id),
      reconnectMs: this.#reconnectMs,
    }
    if (verdict.lost.length + verdict.twice.length + verdict.withoutReason.length > 0)
      await this.#keepEvidence()
    return verdict
  }

  /** Copies all files of the cluster and the logs of its processes, and what the API says about its nodes. */
  async #keepEvidence(): Promise<void> {
    const { evidence } = this.#plan
    rmSync(evidence, { recursive: true, force: true })
    cpSync(this.#cluster.folder, evidence, { recursive: true, filter: (path) => !statSync(path).isSocket() })
    for (const member of [this.#cluster.broker, this.#cluster.controller, ...this.#servers])
      writeFileSync(`${evidence}/${member.name}.log`, member.output)
    writeFileSync(`${evidence}/pauses.json`, JSON.stringify(this.#pauses))
    for (const path of ['nodes', 'attempts', 'tasks?state=assigned'])
      writeFileSync(
        `${evidence}/${path.split('?', 1)[0]}.json`,
        JSON.stringify(await this.#cluster.get(`/${path}`)),
      )
  }

  /** Returns all acknowledged tasks with their end, or their state when the time is up. */
  async #ended(): Promise<ReadonlyMap<string, Task>> {
    const tasks = new Map<string, Task>()
    const deadline = performance.now() + SETTLE_MS
    let open = [...this.#acknowledged]
    while (open.length > 0 && performance.now() < deadline) {
      const left: string[] = []
      for (const id of open) {
        const task = await this.#cluster.get<Task>(`/tasks/${id}`).catch(() => null)
        if (task !== null) tasks.set(id, task)
        if (!FINAL.has(task?.state ?? 'unknown')) left.push(id)
      }
      open = left
      if (open.length > 0) await sleep(1_000)
    }
    return tasks
  }
}

/** A time, in ms, during which a server could report nothing. */
export interface Pause {
  readonly server: string
  readonly from: number
  to: number
}

interface Run {
  readonly server: string
  /** In ms. */
  readonly first: number
  readonly last: number
  readonly isDone: boolean
}

/**
 * Returns the tasks that ran more than once without reason, and those that had to: with `requeue` a task
 * starts again when its server is silent for longer than the lease, and its completion cannot be known then.
 */
export function runsAgainIn(
  folder: string,
  pauses: readonly Pause[],
): Pick<StormVerdict, 'twice' | 'repeated'> {
  const byTask = Map.groupBy(existsSync(folder) ? readdirSync(folder) : [], (file) =>
    file.slice(0, file.indexOf('.')),
  )
  const twice: string[] = []
  const repeated: string[] = []
  for (const [task, files] of byTask) {
    const runs = files
      .map((file) => runOf(file, readFileSync(`${folder}/${file}`, 'utf8')))
      .filter((run) => run !== null)
      .sort((a, b) => a.first - b.first)
    const pairs = runs.slice(1).map((next, i) => ({ run: runs[i] as Run, next }))
    const again = pairs.filter(({ run }) => run.isDone)
    const isRequeued = policyOf(Number(task.slice(1))) === 'requeue'
    if (pairs.some(({ run, next }) => next.first <= run.last)) twice.push(`${task} at once`)
    else if (again.some(({ run, next }) => !isRequeued || !wasSilent(run, next, pauses)))
      twice.push(`${task} again after it was done`)
    else if (again.length > 0) repeated.push(task)
  }
  return { twice, repeated }
}

function runOf(file: string, text: string): Run | null {
  const lines = text.trim().split('\n')
  const ticks = lines.filter((line) => /^\d+$/.test(line)).map((line) => Number(line) / 1e6)
  const [first, last] = [ticks[0], ticks.at(-1)]
  if (first === undefined || last === undefined) return null
  return { server: file.split('.')[1] ?? '', first, last, isDone: lines.at(-1) === 'done' }
}

/** From its completion until the next attempt started, its server was stopped. */
function wasSilent(run: Run, next: Run, pauses: readonly Pause[]): boolean {
  return pauses.some(
    ({ server, from, to }) => server === run.server && from <= run.last + REPORT_MS && to >= next.first,
  )
}

function policyOf(n: number): (typeof POLICIES)[number] {
  return POLICIES[n % POLICIES.length] as (typeof POLICIES)[number]
}

export function keep(file: string, line: object): void {
  appendFileSync(file, `${JSON.stringify(line)}\n`)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
