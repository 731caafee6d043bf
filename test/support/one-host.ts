/** One host without a controller: `headroom gpu-server --standalone` with a declared GPU, and its client. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, type HeadroomClient, type Task } from '../../clients/typescript/client.ts'
import { FROM_SOURCES_ENV } from './headroom-command.ts'
import { headroom, killed, Member, processesNaming, until, type Environment } from './live-cluster.ts'
import { taskIdentity } from './task-identity.ts'

const INVENTORY = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'
const CONFIG = {
  default_vram_overcommit_percent: 100,
  safety_reserve_mib: 0,
  idle_swap_out_seconds: 1,
  heartbeat_seconds: 1,
}

export class OneHost {
  readonly folder = mkdtempSync(join(tmpdir(), 'headroom-one-host-'))
  readonly socket: string
  readonly url: string
  readonly server: Member
  readonly client: HeadroomClient

  /** @param uid the user of the server, which then chooses its own socket; omitted: the current user */
  constructor(env: Environment = {}, uid?: number) {
    // Tasks write to it, each as a separate user.
    chmodSync(this.folder, 0o777)
    const inventory = join(this.folder, 'inventory.yaml')
    writeFileSync(inventory, INVENTORY)
    const runtime = join(this.folder, 'run')
    this.socket =
      uid === undefined ? join(this.folder, 'api.sock') : join(runtime, 'headroom/gpu-server.sock')
    this.url = `unix://${this.socket}`
    mkdirSync(runtime)
    if (uid !== undefined) chownSync(runtime, uid, uid)
    const place = uid === undefined ? ['--socket', this.socket] : []
    const options = ['--standalone', ...place, '--device', 'process', '--inventory', inventory]
    const command = headroom(
      'gpu-server',
      ...options,
      ...[
        '--allow-exec',
        '--idle-after',
        '500ms',
        ...(uid === undefined ? taskIdentity() : ['--tasks-as-me']),
      ],
    )
    this.server = new Member('standalone server', [...asUser(uid), ...command], {
      ...FROM_SOURCES_ENV,
      CONTROLLER_DATA_DIR: join(this.folder, 'data'),
      NODE_STATE_DIR: join(this.folder, 'state'),
      NODE_NAME: 'host',
      XDG_RUNTIME_DIR: runtime,
      LOG_LEVEL: 'warn',
      ...env,
    })
    this.client = createClient({ url: this.url, attempts: 1, environment: {} })
  }

  /** The GPU server has joined the controller of its own process. */
  async start(): Promise<void> {
    await this.server.start(async () => {
      const nodes = await this.client.nodes.list().catch(() => null)
      return nodes?.items.some(({ status }) => status === 'up') ?? false
    })
  }

  /** Starts it with settings that swap within seconds. */
  async startForSwaps(): Promise<void> {
    await this.start()
    await this.client.config.set(CONFIG)
  }

  /** The failure says what the others do. */
  async untilCompleted(ids: readonly string[]): Promise<void> {
    let others: readonly Task[] = []
    await until(`${ids.length} tasks are completed`, async () => {
      const tasks = await Promise.all(ids.map((id) => this.client.tasks.get(id)))
      others = tasks.filter(({ state }) => state !== 'completed')
      return others.length === 0
    }).catch((fault: unknown) => {
      const states = others.map(
        ({ name, state, attempt, wait, end_reason }) =>
          `${name ?? ''}: ${state}, attempt ${attempt}, ${wait?.sentence ?? end_reason ?? ''}`,
      )
      throw new Error(`${String(fault)}: ${states.join('; ')}; its output: ${this.server.output}`)
    })
  }

  async end(): Promise<void> {
    await this.server.end()
    await until('the guards of this host are gone', () => {
      const guards = processesNaming(`${this.folder}/`)
      guards.forEach(killed)
      return guards.length === 0
    })
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function asUser(uid: number | undefined): readonly string[] {
  return uid === undefined ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
}
