/** Requests to swapped-out model servers: the same for each swap method (docs/serving.md). */
import { Agent } from 'node:http'
import { connect } from 'node:net'
import { cpus, loadavg } from 'node:os'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { quantile } from '../faults/fault-cluster.ts'
import { until } from '../support/live-cluster.ts'
import { ask, putToSleep, residencyOf, startServing, type ServingWorld } from './model-servers.ts'

const REQUESTS = Number(process.env['SERVING_REQUESTS'] ?? 30)
/** With its pause, on a busy machine. */
const LONGEST_REQUEST_MS = 10_000
const PAUSE_MS = 2_000
/** On top of the swaps: the look at the sockets, messages, decisions, and the answer. */
const ALLOWANCE_MS = 200
/** Where other programs use the cores, only an upper limit is tested. */
const BUSY_ALLOWANCE_MS = 10_000
const BACK_WITHIN_MS = 10_000
const CLIENTS = 50

/**
 * @param proxies the ports of proxies; null: clients connect to the tasks
 * @param swapsMs what a swap-out and a swap-in take
 */
export function testRequests(proxies: string | null, swapsMs: number): void {
  let world: ServingWorld
  beforeAll(async () => {
    world = await startServing(proxies)
  })
  afterAll(async () => {
    await world?.cluster.end()
  })

  const modelAt = (i: number) => world.models[i % world.models.length] ?? world.models[0]

  async function loop(count: number, pauseMs: number): Promise<number[]> {
    const times: number[] = []
    for (let i = 0; i < count; i++) {
      await pause(pauseMs)
      const { ms, waited } = await ask(modelAt(i))
      if (waited) throw new Error('the request reached the task while its VRAM was away')
      times.push(ms)
    }
    return times
  }

  describe('a swapped-out model server', () => {
    const timeout = REQUESTS * LONGEST_REQUEST_MS
    it('answers every request, with its swaps and little more time', { timeout }, async () => {
      const times = await loop(REQUESTS, PAUSE_MS)
      const isBusy = (loadavg()[0] ?? 0) > cpus().length
      print(`wake, of which ${swapsMs} ms are swaps`, times)
      process.stdout.write(`load ${loadavg()[0]?.toFixed(1)} on ${cpus().length} cores\n`)
      const allowanceMs = isBusy ? BUSY_ALLOWANCE_MS : ALLOWANCE_MS
      expect(quantile(times, 0.95)).toBeLessThanOrEqual(swapsMs + allowanceMs)
    })

    it('answers every request of a client that does not pause', async () => {
      const times = await loop(9, 0)
      print(
        'without pauses, time beyond the swaps (waits for a victim)',
        times.map((ms) => ms - swapsMs),
      )
    })

    it('answers on a connection that was open before', async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      try {
        const [model] = world.models
        await ask(model, agent)
        await putToSleep(world, model)
        expect(await ask(model, agent)).toMatchObject({ isReused: true })
      } finally {
        agent.destroy()
      }
    })

    it('answers on a long connection that was upgraded before', async () => {
      const [model] = world.models
      const socket = connect(model.port, '127.0.0.1')
      try {
        const lines: string[] = []
        createInterface(socket).on('line', (line) => lines.push(line))
        socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n')
        await until('the connection is upgraded', () => lines.includes(''))
        await putToSleep(world, model)
        socket.write('one\n')
        await until('the line is answered', () => lines.some((line) => line.includes(model.checksum)))
      } finally {
        socket.destroy()
      }
    })

    it(`answers ${CLIENTS} requests that arrive at once`, async () => {
      const [model] = world.models
      await putToSleep(world, model)
      await Promise.all(Array.from({ length: CLIENTS }, () => ask(model)))
    })

    it('stays out while no request for it arrives', async () => {
      const [model] = world.models
      await putToSleep(world, model)
      const task = await world.cluster.get<{ placement: { can_signal: boolean } }>(`/tasks/${model.id}`)
      expect(task.placement.can_signal).toBe(true)
      expect(await residencyOf(world.cluster, model)).toBe('swapped_out')
    })
  })

  describe('a request that waits when a process is killed is answered soon after its return:', () => {
    const answersAfter = async (kill: () => Promise<void>, back: () => Promise<void>): Promise<void> => {
      const [model] = world.models
      await putToSleep(world, model)
      await kill()
      let isAnswered = false
      const answer = ask(model).then(() => (isAnswered = true))
      await back()
      const from = performance.now()
      await answer
      expect(isAnswered).toBe(true)
      process.stdout.write(`answered ${Math.round(performance.now() - from)} ms after the return\n`)
      expect(performance.now() - from).toBeLessThanOrEqual(BACK_WITHIN_MS)
    }

    it('the GPU server', async () => {
      const { gpuServer } = world
      const runs = (): number => gpuServer.output.split('GPU server runs').length
      const before = runs()
      await answersAfter(
        () => gpuServer.end(),
        () => gpuServer.start(() => runs() > before),
      )
    })

    it('the controller', async () => {
      const { cluster } = world
      await answersAfter(
        () => cluster.controller.end(),
        () => cluster.startController(),
      )
    })

    it('the broker', async () => {
      const { cluster } = world
      await answersAfter(
        () => cluster.broker.end(),
        async () => {
          await cluster.startBroker()
          await until('the controller is connected', () => cluster.isReady())
        },
      )
    })
  })
}

function print(what: string, times: readonly number[]): void {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => Math.round(quantile(times, share)))
  process.stdout.write(`${what}: p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms, ${times.length} requests\n`)
}
