/**
 * `sse_cpu_ratio`: CPU time per second of the controller with 50 readers of events and the summary, relative
 * to one reader; with the same load, readers in another process, in turn.
 */
import { fork, type ChildProcess } from 'node:child_process'
import type { DurationMs } from '../../../protocol/units.ts'
import { LiveCluster, until } from '../../support/live-cluster.ts'
import { cpuMs } from '../process-use.ts'
import { inShort } from '../stopwatch.ts'
import type { Reading } from '../targets.ts'
import type { RestMeasure } from './rest-targets.ts'

const MANY = 50
const ROUNDS = 5
const ROUND_MS: DurationMs = 6_000
const WARM_UP_MS: DurationMs = 8_000
const NODES = 64
const TASKS_PER_S = 50
const FLEET = `scenario: streams
version: 1
seed: 1
fleet:
  - { count: ${NODES}, name: "sim-{i}", gpus: 8,
      gpu: { model: A100-40, vram_mib: 40960, swap: stock-driver } }
`
const TASK = JSON.stringify({ vram_mib: 8_000, command: ['true'] })

export async function measureStreams(): Promise<readonly Reading<RestMeasure>[]> {
  const cluster = await LiveCluster.start()
  const readers = fork(new URL('./stream-readers.ts', import.meta.url), [
    new URL(cluster.url).port,
    '/api/v1/events/stream?summary=true',
  ])
  let timer: NodeJS.Timeout | undefined
  try {
    await cluster.startFleet(FLEET, '--task-time', '1s')
    await until(
      'the servers are up',
      async () => (await cluster.nodes()).filter(({ status }) => status === 'up').length === NODES,
    )
    timer = setInterval(() => void submit(cluster.url), 1000 / TASKS_PER_S)
    await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS))
    const costs: Record<number, number[]> = { 1: [], [MANY]: [] }
    const seqBefore = await lastSeq(cluster)
    const startedAt = performance.now()
    let bytes = 0
    for (let round = 0; round < ROUNDS; round++) {
      for (const count of [1, MANY]) {
        await setReaders(readers, count)
        costs[count]?.push(await cpuMsPerSecond(cluster.controller.pid))
        if (count === MANY) bytes += await setReaders(readers, 1)
      }
    }
    const eventsPerS = (1000 * ((await lastSeq(cluster)) - seqBefore)) / (performance.now() - startedAt)
    const [one, many] = [mean(costs[1]), mean(costs[MANY])]
    const each = inShort((1000 * bytes) / (ROUNDS * ROUND_MS * MANY))
    const note =
      `${inShort(many)} ms of CPU a second with ${MANY} readers, ${inShort(one)} with 1; ` +
      `${inShort(eventsPerS)} events/s, ${each} B/s each; ${ROUNDS} rounds`
    return [{ name: 'sse_cpu_ratio', value: many / one, note }]
  } finally {
    clearInterval(timer)
    readers.disconnect()
    await cluster.end()
  }
}

/** CPU time is counted in steps of 10 ms, and rounds differ: the total counts. */
function mean(values: readonly number[] = []): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** @returns the number of bytes that existing readers have received. */
function setReaders(readers: ChildProcess, count: number): Promise<number> {
  return new Promise((resolve) => {
    readers.once('message', (bytes) => resolve(Number(bytes)))
    readers.send(count)
  })
}

async function cpuMsPerSecond(pid: number): Promise<number> {
  const [before, startedAt] = [cpuMs(pid), performance.now()]
  await new Promise((resolve) => setTimeout(resolve, ROUND_MS))
  return (1000 * (cpuMs(pid) - before)) / (performance.now() - startedAt)
}

async function lastSeq(cluster: LiveCluster): Promise<number> {
  return (await cluster.get<{ readonly last_seq: number }>('/events?limit=1')).last_seq
}

async function submit(url: string): Promise<void> {
  const answer = await fetch(`${url}/api/v1/tasks`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: TASK,
  })
  await answer.arrayBuffer()
}
