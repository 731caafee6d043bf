import { expect, it } from 'vitest'
import { until } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { count, startFaultCluster, submit, task, type Task } from './fault-cluster.ts'

const ROUNDS = count('FAULTS_BROKER_AWAY', 1)
/** The broker is unreachable for longer than this lease; three servers are too few for the requeue freeze. */
const LEASE_SECONDS = 15
const AWAY_MS = 25_000
const SERVER_COUNT = 3

interface Event {
  readonly kind: string
  readonly data: Readonly<Record<string, unknown>>
}

it.skipIf(whyNoNatsServer() !== null)(
  `A broker missing for ${AWAY_MS / 1000} s costs no node or waiting task (${ROUNDS} times)`,
  async () => {
    const { cluster } = await startFaultCluster({ run_lease_seconds: LEASE_SECONDS }, SERVER_COUNT)
    const started = (policy: string): Promise<readonly Task[]> =>
      Promise.all(
        [0, 1, 2].map(() => submit(cluster, { command: ['sleep', '100000'], on_node_loss: policy })),
      )
    const tasks = [...(await started('wait')), ...(await started('fail')), ...(await started('requeue'))]
    const states = async (): Promise<readonly string[]> =>
      (await Promise.all(tasks.map(({ id }) => task(cluster, id)))).map(
        ({ state, attempt }) => `${state} ${attempt}`,
      )
    const allRun = tasks.map(() => 'running 1')
    await until('all run', async () => (await states()).every((state) => state === 'running 1'))
    for (let round = 0; round < ROUNDS; round++) {
      await cluster.broker.end('SIGKILL')
      await new Promise((resolve) => setTimeout(resolve, AWAY_MS))
      await cluster.startBroker()
      await until('all servers are heard', async () =>
        (await cluster.nodes()).every(({ status }) => status === 'up'),
      )
      // Losses would appear within one lease after the return of the broker.
      await new Promise((resolve) => setTimeout(resolve, 1_000 * (LEASE_SECONDS + 6)))
      expect(await states()).toEqual(allRun)
    }
    const { items } = await cluster.get<{ readonly items: readonly Event[] }>('/events?limit=200')
    expect(
      items.filter(({ kind, data }) => kind === 'node_status' && data['status'] === 'unreachable'),
    ).toEqual([])
  },
  120_000 + ROUNDS * 90_000,
)
