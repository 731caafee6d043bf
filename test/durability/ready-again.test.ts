/** After kill -9, a controller with much state is ready again within seconds. */
import { expect, it } from 'vitest'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import { controllerOn, figure, fillStore, newFolder } from './controller-on.ts'

/** The promise is three seconds; `make test-durability` enforces it, and `make test` only prints the time. */
const READY_WITHIN_MS = figure('DURABILITY_READY_WITHIN_MS', Infinity)
const STARTS = figure('DURABILITY_STARTS', 1)
const FINISHED = figure('DURABILITY_FINISHED', 0)
const NODES = 200
const OPEN_TASKS = 10_000
const LIMIT = READY_WITHIN_MS === Infinity ? '' : `, within ${READY_WITHIN_MS} ms`

it.skipIf(whyNoNatsServer() !== null)(
  `With ${OPEN_TASKS} tasks and ${NODES} nodes the controller is ready again after kill -9${LIMIT}`,
  async () => {
    const broker = await startNatsServer()
    const data = newFolder()
    await fillStore(data, { nodes: NODES, openTasks: OPEN_TASKS, finished: FINISHED })
    const controller = controllerOn(data, { CONTROLLER_NATS_URL: broker.url })
    const tookMs: number[] = []
    const cpuS: string[] = []
    for (let start = 0; start < STARTS; start++) {
      const from = performance.now()
      await controller.start(
        async (root) => (await fetch(`${root}/readyz`).catch(() => null))?.status === 200,
      )
      tookMs.push(performance.now() - from)
      const metrics = await (await fetch(`${controller.url()}/metrics`)).text()
      cpuS.push(Number(/^process_cpu_seconds_total (\S+)/m.exec(metrics)?.[1]).toFixed(2))
      const { total } = (await (await fetch(`${controller.url()}/tasks?state=pending&limit=1`)).json()) as {
        readonly total: number
      }
      expect(total).toBe(OPEN_TASKS - NODES * 8)
      await controller.member.end('SIGKILL')
    }
    await broker.kill()
    console.log(
      `ready after ${tookMs.map((ms) => (ms / 1000).toFixed(2)).join(', ')} s from the start of the ` +
        `process (CPU: ${cpuS.join(', ')} s); ${FINISHED} finished tasks besides`,
    )
    expect(Math.max(...tookMs)).toBeLessThanOrEqual(READY_WITHIN_MS)
  },
  120_000,
)
