import { expect, it, onTestFinished } from 'vitest'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { submit, VRAM_MIB } from './fault-cluster.ts'

const INVENTORY = JSON.stringify({ gpus: [{ model: 'declared', vram_mib: VRAM_MIB, swap: 'pinned-gen4' }] })
const LEASE_S = 15
/** Longer than two leases, after which a server ends its tasks. */
const FROZEN_FOR_MS = 36_000
/** The controller restarts, and gives every node a full new lease window. */
const RESTART_AFTER_MS = 20_000
const POLICIES = ['fail', 'requeue', 'wait'] as const

interface Ended {
  readonly state: string
  readonly exit_code: number | null
  readonly end_code?: string | null
  readonly end_reason: string | null
  readonly attempt: number
}

it.skipIf(whyNoNatsServer() !== null)(
  'Tasks that end with exit code 0 on a server stopped beyond the lease are completed',
  async () => {
    const cluster = await LiveCluster.start()
    onTestFinished(() => cluster.end(), 30_000)
    await cluster.send('PUT', '/config', { heartbeat_seconds: 1, run_lease_seconds: LEASE_S })
    const server = await cluster.startServer('frozen', INVENTORY)
    const submitted = await Promise.all(
      POLICIES.map((on_node_loss) =>
        submit(cluster, { name: on_node_loss, command: ['sleep', '3'], on_node_loss }),
      ),
    )
    const all = (): Promise<Ended[]> =>
      Promise.all(submitted.map(({ id }) => cluster.get<Ended>(`/tasks/${id}`)))
    await until('all tasks run', async () => (await all()).every(({ state }) => state === 'running'))
    server.signal('SIGSTOP')
    const frozenAt = performance.now()
    await until('half of the time has passed', () => performance.now() - frozenAt > RESTART_AFTER_MS)
    await cluster.controller.end('SIGKILL')
    await cluster.startController()
    await until('the leases are long over', () => performance.now() - frozenAt > FROZEN_FOR_MS, FROZEN_FOR_MS)
    server.signal('SIGCONT')
    const isOver = ({ state }: Ended): boolean => ['completed', 'failed', 'cancelled', 'lost'].includes(state)
    await until('all tasks have ended', async () => (await all()).every(isOver))
    const ends = (await all()).map(({ state, exit_code, end_code, attempt }) => ({
      state,
      exit_code,
      end_code,
      attempt,
    }))
    expect(ends).toEqual(
      POLICIES.map(() => ({ state: 'completed', exit_code: 0, end_code: 'completed', attempt: 1 })),
    )
    expect((await all()).filter(({ end_reason }) => end_reason === null)).toEqual([])
  },
  120_000,
)
