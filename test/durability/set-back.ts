/**
 * One case: the complete data folder of a running cluster is set back, with its mark, and a controller starts
 * on it. The files that the tasks write show violations; then one of the documented ways out is taken, and
 * the cluster must work again (docs/operating.md).
 */
import Database from 'better-sqlite3'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { runsAgainIn } from '../storms/storm.ts'
import { headroom } from '../support/headroom-command.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'

/** `within`: one controller wrote all that is missing; `across`: it restarted meanwhile. */
export type SetBackKind = 'within' | 'across'

/** The newer folder is put back; a backup is restored; the loss is accepted. */
export const WAYS_OUT = ['newer', 'restore', 'accept'] as const
export type WayOut = (typeof WAYS_OUT)[number]

export interface SetBackPlan {
  readonly kind: SetBackKind
  readonly wayOut: WayOut
  readonly seed: string
}

export interface SetBackVerdict {
  /** From the first server contact to the alarm. */
  readonly alarmAfterMs: number
  /** The evidence of the servers, one entry each. */
  readonly reasons: readonly string[]
  /** Tasks that ran and whose process stopped writing: while the store was behind, and after the way out. */
  readonly silentWhileBehind: readonly string[]
  readonly silentAfter: readonly string[]
  readonly twice: readonly string[]
  /** Of the controllers that the servers have obeyed, in the order of their starts. */
  readonly epochs: readonly number[]
  /** Of the controller on the older folder; no server may have obeyed it. */
  readonly wasObeyed: boolean
  readonly pause: string | null
  readonly adopted: number
  /** Kinds of recovery events: `RECOVERY` when it begins, `null` when it ends. */
  readonly recoveries: readonly (string | null)[]
}

interface Ahead {
  readonly node_id: string
  readonly reason: string
  readonly epoch: number
  readonly controller: string | null
}

interface Recovery {
  readonly placements_paused: string | null
  readonly recovery: object | null
  readonly nodes_heard: number
  readonly nodes_ahead: readonly Ahead[]
}

interface Seen {
  readonly name: string
  readonly last_seen_at: string
}

interface Attempt {
  readonly task_id: string
  readonly attempt: number
  readonly node_id: string
}

const SERVERS = 3
const HEARTBEAT_SECONDS = 1
const INVENTORY = JSON.stringify({ gpus: [{ model: 'declared', vram_mib: 8_192, swap: 'pinned-gen4' }] })
/** The lease is longer than a case. */
const CONFIG = { run_lease_seconds: 120, heartbeat_seconds: HEARTBEAT_SECONDS, safety_reserve_mib: 0 }
/** Writes the time in nanoseconds, ten times a second, to a file of this attempt. */
const TICKS = 'f="$0.$$.$(cat /proc/sys/kernel/random/uuid)"; while :; do date +%s%N >> "$f"; sleep 0.1; done'
const BEHIND_MS = 5_000
const TICKS_WITHIN_MS = 15_000

export async function setBackOnce(plan: SetBackPlan): Promise<SetBackVerdict> {
  const cluster = await LiveCluster.start()
  try {
    return await new SetBackCase(cluster, plan).run()
  } finally {
    await cluster.end()
  }
}

class SetBackCase {
  readonly #cluster: LiveCluster
  readonly #plan: SetBackPlan
  readonly #random: () => number
  readonly #data: string
  readonly #ticks: string
  readonly #ids = new Map<string, string>()
  readonly #epochs: number[] = []

  constructor(cluster: LiveCluster, plan: SetBackPlan) {
    this.#cluster = cluster
    this.#plan = plan
    this.#random = createSeededRandom(plan.seed).stream('set-back')
    this.#data = cluster.path('controller')
    this.#ticks = cluster.path('ticks')
    mkdirSync(this.#ticks)
    chmodSync(this.#ticks, 0o777)
  }

  async run(): Promise<SetBackVerdict> {
    const cluster = this.#cluster
    await cluster.send('PUT', '/config', CONFIG)
    await Promise.all(
      Array.from({ length: SERVERS }, (_, i) => cluster.startServer(`server-${i}`, INVENTORY)),
    )
    const early = ['early0', 'early1', 'early2']
    const blocks = ['block0', 'block1', 'block2']
    for (const name of early) await this.#submit(name, { vram_mib: 256 })
    for (const name of blocks) await this.#submit(name, { vram_mib: 6_000, noswap: 1 })
    await this.#submit('waits', { vram_mib: 6_000, noswap: 1 })
    await this.#ticking([...early, ...blocks])
    await this.#snapshot('older')

    // In the lost part one task is cancelled, a waiting one starts, and others are submitted.
    await sleep(500 * this.#random())
    await cluster.send('DELETE', `/tasks/${this.#ids.get('block0') ?? ''}`)
    await this.#ticking(['waits'])
    if (this.#plan.wayOut === 'restore')
      await this.#run('backup', cluster.path('backup.db'), '--data-dir', this.#data)
    if (this.#plan.kind === 'across') {
      for (let starts = 1 + Math.floor(2 * this.#random()); starts > 0; starts--) await this.#restart()
    }
    const late = ['late0', 'late1', 'late2']
    for (const name of late) await this.#submit(name, { vram_mib: 256 })
    await this.#ticking(late)
    await this.#allHaveHeard()
    const running = [...early, 'block1', 'block2', 'waits', ...late]

    await this.#end()
    this.#noteEpoch()
    renameSync(this.#data, cluster.path('newer'))
    this.#put('older')
    await cluster.startController()
    const alarmAfterMs = await this.#alarm()
    const before = await this.#recovery()
    await this.#submit('behind', { vram_mib: 256 }, 'sleep 0.1')
    await sleep(BEHIND_MS)
    const silentWhileBehind = await this.#silentOf(running)
    const behind = await this.#recovery()

    await this.#end()
    await this.#takeWayOut()
    const adopted = await this.#adoptAll()
    await this.#works()
    const silentAfter = await this.#silentOf(running)
    this.#noteEpoch()
    const told = ({ node_id: node, epoch, controller }: Ahead): string =>
      `${node} ${epoch} ${controller ?? ''}`
    const atFirst = new Map(before.nodes_ahead.map((ahead) => [ahead.node_id, told(ahead)]))
    return {
      alarmAfterMs,
      reasons: behind.nodes_ahead.map(({ reason }) => reason),
      silentWhileBehind,
      silentAfter,
      twice: runsAgainIn(this.#ticks, []).twice,
      epochs: this.#epochs,
      wasObeyed:
        behind.nodes_ahead.length < SERVERS ||
        behind.nodes_ahead.some((ahead) => (atFirst.get(ahead.node_id) ?? told(ahead)) !== told(ahead)),
      pause: behind.placements_paused,
      adopted,
      recoveries: await this.#recoveries(),
    }
  }

  async #submit(name: string, fields: object, script = TICKS): Promise<void> {
    const policies = ['requeue', 'wait', 'fail'] as const
    const task = await this.#cluster.send<{ readonly id: string }>('POST', '/tasks', {
      name,
      on_node_loss: policies[Math.floor(this.#random() * policies.length)],
      command: ['sh', '-c', script, `${this.#ticks}/${name}`],
      ...fields,
    })
    this.#ids.set(name, task.id)
  }

  /** A stopped controller writes nothing, so its files are consistent. */
  async #snapshot(name: string): Promise<void> {
    this.#cluster.controller.signal('SIGSTOP')
    try {
      const stat = `/proc/${this.#cluster.controller.pid}/stat`
      await until('the controller stands still', () => /\) [Tt] /.test(readFileSync(stat, 'utf8')))
      cpSync(this.#data, this.#cluster.path(name), {
        recursive: true,
        filter: (file) => !file.endsWith('-shm'),
      })
    } finally {
      this.#cluster.controller.signal('SIGCONT')
    }
  }

  #put(name: string): void {
    rmSync(this.#data, { recursive: true, force: true })
    cpSync(this.#cluster.path(name), this.#data, { recursive: true })
  }

  #end(): Promise<void> {
    return this.#cluster.controller.end(this.#random() < 0.5 ? 'SIGKILL' : 'SIGTERM')
  }

  async #restart(): Promise<void> {
    await this.#end()
    this.#noteEpoch()
    await this.#cluster.startController()
    await until('the nodes are up again', async () =>
      (await this.#cluster.nodes()).every(({ status }) => status === 'up'),
    )
  }

  /** Of the store in its current state: that of the last controller that wrote to it. */
  #noteEpoch(): void {
    const db = new Database(join(this.#data, STORE_FILE), { readonly: true })
    this.#epochs.push(db.prepare<[], number>('select epoch from marks').pluck().get() ?? 0)
    db.close()
  }

  /** @returns milliseconds from the first server contact to the alarm */
  async #alarm(): Promise<number> {
    let heardAt: number | null = null
    let last: Recovery | null = null
    const isRaised = async (): Promise<boolean> => {
      last = await this.#recovery()
      if (last.nodes_heard > 0) heardAt ??= performance.now()
      if (last.placements_paused !== 'STORE_BEHIND') return false
      const { alarms } = await this.#cluster.get<{ readonly alarms: readonly { readonly code: string }[] }>(
        '/summary',
      )
      return alarms.some(({ code }) => code === 'STORE_BEHIND')
    }
    await until('STORE_BEHIND', isRaised).catch((error: unknown) => {
      throw new Error(`no STORE_BEHIND; the controller says ${JSON.stringify(last)}`, { cause: error })
    })
    const alarmAfterMs = performance.now() - (heardAt ?? performance.now())
    await until('every server was heard', async () => (await this.#recovery()).nodes_heard === SERVERS)
    return alarmAfterMs
  }

  async #takeWayOut(): Promise<void> {
    const cluster = this.#cluster
    switch (this.#plan.wayOut) {
      case 'newer':
        this.#put('newer')
        return cluster.startController()
      case 'restore':
        await this.#run('restore', cluster.path('backup.db'), '--force', '--data-dir', this.#data)
        return cluster.startController()
      case 'accept': {
        // With the mark of the newer folder the older store is refused; the message names the mark to accept.
        this.#put('older')
        cpSync(join(cluster.path('newer'), `${STORE_FILE}.mark`), join(this.#data, `${STORE_FILE}.mark`))
        const line = await cluster.startController().then(
          () => 'it was not refused',
          (error: unknown) => String(error),
        )
        const mark = /went back to an earlier state.*--accept-loss (\S+)\./.exec(line)?.[1]
        if (mark === undefined) throw new Error(`no refusal that names a mark: ${line}`)
        return cluster.startController('--accept-loss', mark)
      }
    }
  }

  /** Waits until recovery is over. @returns the number of attempts that were unknown to the store */
  async #adoptAll(): Promise<number> {
    await until('no server has heard of more, and no recovery is on', async () => {
      const { placements_paused: pause, nodes_heard: heard, nodes_ahead: ahead } = await this.#recovery()
      return heard === SERVERS && ahead.length === 0 && pause === null
    })
    const { items } = await this.#cluster.get<{ readonly items: readonly Attempt[] }>('/attempts')
    for (const { task_id: id, attempt, node_id: node } of items) {
      await this.#cluster.send('POST', `/attempts/${id}/${attempt}/adopt`, { owner: null, node_id: node })
    }
    return items.length
  }

  /** A task for each node completes, and every task that ran is known as running. */
  async #works(): Promise<void> {
    const names = ['after0', 'after1', 'after2']
    for (const name of names)
      await this.#submit(name, { vram_mib: 256 }, 'date +%s%N >> "$0.after"; echo done >> "$0.after"')
    const known = [...this.#ids].filter(([name]) => !['block0', 'behind'].includes(name))
    await until('the cluster works again', async () => {
      for (const [name, id] of known) {
        const { state } = await this.#cluster.get<{ readonly state: string }>(`/tasks/${id}`)
        if (state !== (names.includes(name) ? 'completed' : 'running')) return false
      }
      return true
    })
  }

  /** Two messages of each server: with the answer to the first one, it knows the epoch of the lost part. */
  async #allHaveHeard(): Promise<void> {
    for (let word = 0; word < 2; word++) {
      const before = new Map((await this.#seen()).map((node) => [node.name, node.last_seen_at]))
      const isLater = (node: Seen): boolean => node.last_seen_at > (before.get(node.name) ?? '')
      await until('every server is heard', async () => (await this.#seen()).every(isLater))
    }
  }

  async #seen(): Promise<readonly Seen[]> {
    return (await this.#cluster.get<{ readonly items: readonly Seen[] }>('/nodes')).items
  }

  async #ticking(names: readonly string[]): Promise<void> {
    await until(`${names.join(', ')} run`, () => names.every((name) => this.#bytesOf(name) > 0))
  }

  /** Tasks whose only process has stopped writing. */
  async #silentOf(names: readonly string[]): Promise<readonly string[]> {
    const before = new Map(names.map((name) => [name, this.#bytesOf(name)]))
    const silent = (): readonly string[] =>
      names.filter((name) => this.#filesOf(name).length !== 1 || this.#bytesOf(name) === before.get(name))
    await until('every task ticks', () => silent().length === 0, TICKS_WITHIN_MS).catch(() => null)
    return silent()
  }

  #filesOf(name: string): readonly string[] {
    return readdirSync(this.#ticks).filter((file) => file.startsWith(`${name}.`))
  }

  #bytesOf(name: string): number {
    return this.#filesOf(name).reduce((sum, file) => sum + statSync(join(this.#ticks, file)).size, 0)
  }

  #recovery(): Promise<Recovery> {
    return this.#cluster.get<Recovery>('/recovery')
  }

  async #recoveries(): Promise<readonly (string | null)[]> {
    const { items } = await this.#cluster.get<{
      readonly items: readonly { readonly data: { readonly alarm: string | null } }[]
    }>('/events?kind=recovery')
    return items.map(({ data }) => data.alarm)
  }

  async #run(...args: readonly string[]): Promise<void> {
    const { code, stderr } = await headroom(args)
    if (code !== 0) throw new Error(`headroom ${args.join(' ')} ended with ${code}: ${stderr}`)
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
