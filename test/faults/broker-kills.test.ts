import { expect, it } from 'vitest'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { until } from '../support/live-cluster.ts'
import { count, leavesMark, quantile, SERVERS, startFaultCluster, submit, task } from './fault-cluster.ts'

const KILLS = count('FAULTS_BROKER_KILLS', 3)
const LASTING = 12
const TIMEOUT_MS = 60_000 + 10_000 * KILLS

interface Node {
  readonly last_seen_at: string
}

it.skipIf(whyNoNatsServer() !== null)(
  `${KILLS} broker kills under load: no task is killed or lost, and every server reconnects`,
  async () => {
    const { cluster } = await startFaultCluster({ run_lease_seconds: 60 })
    const file = cluster.path('marks')
    const lasting = await Promise.all(
      Array.from({ length: LASTING }, () => submit(cluster, { command: ['sleep', '100000'] })),
    )
    await until('the lasting tasks run', async () =>
      (await Promise.all(lasting.map(({ id }) => task(cluster, id)))).every(
        ({ state }) => state === 'running',
      ),
    )

    const short: string[] = []
    let isLoading = true
    const load = (async () => {
      while (isLoading) {
        const name = `short-${short.length}`
        const { id } = await submit(cluster, { command: leavesMark(file, name) })
        short.push(id)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    })()
    load.catch(() => {})
    const resyncedMs: number[] = []
    for (let kill = 0; kill < KILLS; kill++) {
      await cluster.broker.end('SIGKILL')
      // Reads and submissions continue meanwhile.
      const during = await submit(cluster, { command: leavesMark(file, `during-${kill}`) })
      short.push(during.id)
      expect(await cluster.isReady()).toBe(false)
      await cluster.startBroker()
      resyncedMs.push(...(await heardAgain(cluster)))
    }
    isLoading = false
    await load

    await until(
      'the short tasks are over',
      async () =>
        (await Promise.all(short.map((id) => task(cluster, id)))).every(({ state }) => state === 'completed'),
      TIMEOUT_MS,
    )
    const after = await Promise.all(lasting.map(({ id }) => task(cluster, id)))
    expect(after.map(({ state, attempt }) => `${state} ${attempt}`)).toEqual(after.map(() => 'running 1'))
    console.log(
      `${KILLS} broker kills, ${short.length} short tasks: servers heard again after p50 ` +
        `${quantile(resyncedMs, 0.5).toFixed(0)} ms, p95 ${quantile(resyncedMs, 0.95).toFixed(0)} ms`,
    )
    expect(resyncedMs.length).toBe(KILLS * SERVERS)
  },
  TIMEOUT_MS,
)

/** Milliseconds from now until the first contact of each server. */
async function heardAgain(
  cluster: Awaited<ReturnType<typeof startFaultCluster>>['cluster'],
): Promise<readonly number[]> {
  const since = Date.now()
  let heard: readonly number[] = []
  await until('every server is heard again', async () => {
    const { items } = await cluster.get<{ readonly items: readonly Node[] }>('/nodes')
    heard = items.map((node) => Date.parse(node.last_seen_at) - since)
    return heard.every((ms) => ms >= 0)
  })
  return heard
}
