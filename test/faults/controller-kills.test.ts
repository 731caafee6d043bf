import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { until } from '../support/live-cluster.ts'
import { count, leavesMark, startFaultCluster, submit, task } from './fault-cluster.ts'

const KILLS = count('FAULTS_CONTROLLER_KILLS', 4)
const TIMEOUT_MS = 60_000 + 10_000 * KILLS
const CLIENTS = 4

it.skipIf(whyNoNatsServer() !== null)(
  `${KILLS} controller kills under load: no acknowledged task is lost or runs twice`,
  async () => {
    const { cluster } = await startFaultCluster({ run_lease_seconds: 60 })
    const file = cluster.path('marks')
    const acknowledged = new Map<string, string>()
    let [isLoading, number] = [true, 0]
    const client = async (): Promise<void> => {
      while (isLoading) {
        const name = `task-${number++}`
        // A request without an answer may or may not have been accepted; the test does not rely on it.
        const answer = await submit(cluster, {
          name,
          command: leavesMark(file, name),
          on_node_loss: 'wait',
        }).catch(() => null)
        if (answer !== null) acknowledged.set(answer.id, name)
        await new Promise((resolve) => setTimeout(resolve, answer === null ? 50 : 10))
      }
    }
    const clients = Array.from({ length: CLIENTS }, client)
    for (let kill = 0; kill < KILLS; kill++) {
      const before = acknowledged.size
      // In the middle of work, at a different point each time.
      await until('the controller works', () => acknowledged.size > before + 5 + ((kill * 7) % 23))
      await cluster.controller.end('SIGKILL')
      await cluster.startController()
    }
    isLoading = false
    await Promise.all(clients)

    await until(
      'everything acknowledged is over',
      async () => {
        for (const id of acknowledged.keys())
          if ((await task(cluster, id)).state !== 'completed') return false
        return true
      },
      TIMEOUT_MS,
    )
    const runs = new Map<string, number>()
    for (const name of existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])
      runs.set(name, (runs.get(name) ?? 0) + 1)
    const lost = [...acknowledged.values()].filter((name) => !runs.has(name))
    const twice = [...runs].filter(([, times]) => times > 1)
    console.log(
      `${KILLS} controller kills: ${acknowledged.size} tasks acknowledged, ${lost.length} lost, ` +
        `${twice.length} run twice`,
    )
    expect({ lost, twice }).toEqual({ lost: [], twice: [] })
  },
  TIMEOUT_MS,
)
