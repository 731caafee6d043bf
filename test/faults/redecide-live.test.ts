/**
 * A live cluster is subjected to faults, and its recording is decided again: every decision must be equal.
 * Longer by hand: REDECIDE_SECONDS=600 vitest run test/faults/redecide-live.test.ts
 */
import { cpSync } from 'node:fs'
import { afterAll, expect, it } from 'vitest'
import { headroom as run } from '../support/headroom-command.ts'
import { LiveCluster, until, type Member } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { count } from './fault-cluster.ts'

const SECONDS = count('REDECIDE_SECONDS', 12)
const PART = `version: 1
seed: 1
clock: { until: 1d }
workload: []
`
const FLEETS = ['a', 'b'].map(
  (name) => `scenario: fleet-${name}
${PART}fleet:
  - { count: 3, name: "${name}-{i}", gpus: 2, gpu: { model: declared, vram_mib: 8192, swap: pinned-gen4 } }
`,
)
const CONFIG = {
  heartbeat_seconds: 1,
  run_lease_seconds: 15,
  idle_swap_out_seconds: 1,
  default_vram_overcommit_percent: 100,
  safety_reserve_mib: 0,
}

let cluster: LiveCluster | null = null
afterAll(() => cluster?.end(), 60_000)

it.skipIf(whyNoNatsServer() !== null)(
  `${SECONDS} s of kills and partitions are decided equally again`,
  async () => {
    // Few small files: removed ones leave a checkpoint.
    const live = (cluster = await LiveCluster.start({
      CONTROLLER_RECORDING_FILE_MIB: '0.05',
      CONTROLLER_RECORDING_FILES: '2',
    }))
    await live.send('PUT', '/config', CONFIG)
    const fleets: Member[] = []
    for (const scenario of FLEETS) fleets.push(await live.startFleet(scenario))
    const isUp = async (): Promise<boolean> =>
      (await live.nodes()).filter(({ status }) => status === 'up').length === 6
    await until('all servers are up', isUp)
    const load = new Load(live)
    const faults = await torment(live, fleets, performance.now() + SECONDS * 1000)
    await load.end()
    // The last entries are lost with the process, as in any incident.
    await live.controller.end('SIGKILL')

    if (process.env['REDECIDE_KEEP'] !== undefined)
      cpSync(live.path('controller/recording'), process.env['REDECIDE_KEEP'], { recursive: true })
    const { code, stdout, stderr } = await run([
      'sim',
      'redecide',
      live.path('controller/recording'),
      '--json',
    ])
    const again = JSON.parse(stdout) as Readonly<
      Record<'starts' | 'inputs' | 'decisions' | 'events' | 'bytes', number>
    > & {
      readonly difference: unknown
    }
    console.log(
      `${SECONDS} s, ${load.submitted} tasks, faults: ${JSON.stringify(faults)}; ` +
        `${stdout.replaceAll(/\s+/g, ' ')} ${stderr}`,
    )
    expect(live.controller.output).not.toContain('broken invariant')
    expect(again.difference).toBeNull()
    expect(code).toBe(0)
    expect(again.starts).toBeLessThanOrEqual(1 + (faults['controller kill'] ?? 0))
    expect(again.decisions).toBeGreaterThan(0)
    expect(live.controller.output).not.toContain('the beginning of this recording is lost')
  },
  SECONDS * 1000 + 90_000,
)

/** Tasks that start and end, some of which are cancelled; requests without an answer are ignored. */
class Load {
  submitted = 0
  #isOver = false
  readonly #done: Promise<void>

  constructor(live: LiveCluster) {
    this.#done = this.#run(live)
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#done
  }

  async #run(live: LiveCluster): Promise<void> {
    for (let i = 0; !this.#isOver; i++) {
      const command = ['headroom', 'work', 'busy=500ms', `idle=${2 + (i % 5)}s`, 'busy=300ms']
      const fields = {
        name: `t-${i}`,
        vram_mib: 2000 + ((i * 977) % 4000),
        gpu_count: i % 7 === 0 ? 2 : 1,
        priority: i % 3,
        on_node_loss: i % 4 === 0 ? 'wait' : 'requeue',
        noswap: i % 11 === 0 ? 1 : 0,
        command,
      }
      const answer = await live.send<{ readonly id: string }>('POST', '/tasks', fields).catch(() => null)
      if (answer !== null) this.submitted += 1
      if (answer !== null && i % 9 === 0) await live.send('DELETE', `/tasks/${answer.id}`).catch(() => null)
      await pause(answer === null ? 100 : 60)
    }
  }
}

/** Causes one fault after the other until the time has passed; returns their counts. */
async function torment(
  live: LiveCluster,
  fleets: readonly Member[],
  endsAt: number,
): Promise<Readonly<Record<string, number>>> {
  const [first, second] = fleets as [Member, Member]
  const connected = (fleet: Member): (() => boolean) => {
    const before = fleet.output.length
    return () => fleet.output.slice(before).includes('connected')
  }
  const stop = async (member: Member, ms: number): Promise<void> => {
    member.signal('SIGSTOP')
    await pause(ms)
    member.signal('SIGCONT')
  }
  const faults: readonly (readonly [name: string, make: () => Promise<void>])[] = [
    ['fleet stop', () => stop(second, 4_500)],
    [
      'controller kill',
      async () => {
        await live.controller.end('SIGKILL')
        await live.startController().catch(async (error: unknown) => {
          const ready = await fetch(`${live.url}/readyz`).then((answer) => answer.text(), String)
          throw new Error(`${String(error)}: ${ready}\n${live.controller.output.slice(-2_000)}`)
        })
      },
    ],
    [
      'broker kill',
      async () => {
        await live.broker.end('SIGKILL')
        await pause(500)
        await live.startBroker()
      },
    ],
    [
      'fleet kill',
      async () => {
        await first.end('SIGKILL')
        await first.start(connected(first))
      },
    ],
    ['operator', () => live.send('PUT', '/config', { idle_swap_out_seconds: 1 + (Math.floor(endsAt) % 2) })],
    ['broker stop', () => stop(live.broker, 2_000 + Math.min(18_000, SECONDS * 50))],
    ['controller stop', () => stop(live.controller, 1_500)],
  ]
  const made: Record<string, number> = {}
  await pause(1_000)
  for (let i = 0; performance.now() < endsAt; i++) {
    const [name, make] = faults[i % faults.length] as (typeof faults)[number]
    await make()
    made[name] = (made[name] ?? 0) + 1
    await pause(700)
  }
  return made
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
