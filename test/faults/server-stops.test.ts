import { expect, it } from 'vitest'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { until } from '../support/live-cluster.ts'
import { count, leavesTrail, startFaultCluster, submit, task, trails } from './fault-cluster.ts'

const ROUNDS = count('FAULTS_SERVER_STOPS', 1)
const LEASE_S = 15
const TIMEOUT_MS = 60_000 + 60_000 * ROUNDS

for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
  it.skipIf(whyNoNatsServer() !== null)(
    `A server that gets ${signal} for longer than the lease: its tasks stop before they run elsewhere`,
    async () => {
      const { cluster, servers } = await startFaultCluster({
        heartbeat_seconds: 1,
        run_lease_seconds: LEASE_S,
      })
      for (let round = 0; round < ROUNDS; round++) {
        const trail = `trail-${round}`
        const { id } = await submit(cluster, {
          command: leavesTrail(cluster.path(trail)),
          on_node_loss: 'requeue',
        })
        await until(
          'the task runs',
          async () =>
            (await task(cluster, id)).state === 'running' && trails(cluster.folder, trail).length === 1,
        )
        const name = (await task(cluster, id)).placement?.node_name
        const server = servers.find((each) => each.name === name)
        if (server === undefined) throw new Error(`the task runs on ${String(name)}`)
        const isUp = async (): Promise<boolean> =>
          (await cluster.nodes()).some((each) => each.name === name && each.status === 'up')
        server.signal(signal)
        await until(
          'the task runs elsewhere',
          async () => (await task(cluster, id)).attempt === 2 && trails(cluster.folder, trail).length === 2,
          TIMEOUT_MS,
        )
        const [first, second] = trails(cluster.folder, trail)
        if (first === undefined || second === undefined) throw new Error('no trails')
        console.log(
          `${signal}: the first attempt was last seen ` +
            `${Number((second.from - first.to) / 1_000_000n)} ms before the second began`,
        )
        expect(first.to < second.from).toBe(true)
        if (signal === 'SIGSTOP') server.signal('SIGCONT')
        else await server.start(isUp)
        // After its return it has not resumed tasks that run elsewhere.
        await until('the server is back', isUp)
        expect(trails(cluster.folder, trail)[0]?.to).toBe(first.to)
        await cluster.send('DELETE', `/tasks/${id}`)
        await until('the task is over', async () => (await task(cluster, id)).state === 'cancelled')
      }
    },
    TIMEOUT_MS,
  )
}
