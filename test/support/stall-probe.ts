/**
 * In a separate thread: requests /livez repeatedly over one connection, and reports the longest response
 * time.
 */
import { Agent, get } from 'node:http'
import { parentPort, Worker, workerData } from 'node:worker_threads'

const EVERY_MS = 10

export interface StallProbe {
  /** Ends it; returns the longest response time so far and the 99th percentile, in milliseconds. */
  end(): Promise<{ readonly maxMs: number; readonly p99Ms: number; readonly count: number }>
}

export function probeStalls(url: string): StallProbe {
  const worker = new Worker(new URL(import.meta.url), { workerData: { url } })
  return {
    end: () =>
      new Promise((resolve, reject) => {
        worker.once(
          'message',
          (found: Awaited<ReturnType<StallProbe['end']>>) =>
            void worker.terminate().then(() => resolve(found)),
        )
        worker.once('error', reject)
        worker.postMessage('end')
      }),
  }
}

async function probe(url: string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const took: number[] = []
  let isOver = false
  parentPort?.once('message', () => (isOver = true))
  while (!isOver) {
    const from = performance.now()
    await new Promise<void>((done) => {
      get(`${url}/livez`, { agent }, (answer) => answer.resume().once('end', done)).once('error', () =>
        done(),
      )
    })
    took.push(performance.now() - from)
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  }
  agent.destroy()
  const sorted = Float64Array.from(took).sort((a, b) => a - b)
  parentPort?.postMessage({
    maxMs: sorted.at(-1) ?? 0,
    p99Ms: sorted[Math.floor(0.99 * sorted.length)] ?? 0,
    count: sorted.length,
  })
}

if (parentPort !== null && typeof (workerData as { url?: unknown } | null)?.url === 'string')
  await probe((workerData as { url: string }).url)
