/**
 * `post_task_ratio` and `get_config_ratio`: responses per second relative to a bare server that returns the
 * same bytes, in turn.
 */
import { fork } from 'node:child_process'
import { LiveCluster } from '../../support/live-cluster.ts'
import { inShort, median } from '../stopwatch.ts'
import type { Reading } from '../targets.ts'
import { answersPerSecond, requestBytes, type Load } from './closed-loop.ts'
import type { RestMeasure } from './rest-targets.ts'

const ROUNDS = 5
const ROUND_MS = 2_000
const WARM_UP_MS = 3_000
const CONNECTIONS = 64
const TASK = { name: 'bench', vram_mib: 8192, labels: { team: 'a' }, command: ['python', 'train.py'] }

export async function measureRatios(): Promise<readonly Reading<RestMeasure>[]> {
  const cluster = await LiveCluster.start()
  const bare = await startBare({
    get: await bodyOf(cluster, '/config'),
    post: JSON.stringify(await cluster.send('POST', '/tasks', TASK)),
  })
  try {
    const port = Number(new URL(cluster.url).port)
    const get = await ratioOf(
      'get_config_ratio',
      { port, request: requestBytes('GET', '/api/v1/config'), status: 200 },
      bare.port,
    )
    const post = await ratioOf(
      'post_task_ratio',
      { port, request: requestBytes('POST', '/api/v1/tasks', TASK), status: 201 },
      bare.port,
    )
    return [post, get]
  } finally {
    bare.end()
    await cluster.end()
  }
}

async function ratioOf(
  name: RestMeasure,
  ours: Pick<Load, 'port' | 'request' | 'status'>,
  barePort: number,
): Promise<Reading<RestMeasure>> {
  const rate = (port: number, forMs: number) =>
    answersPerSecond({ ...ours, port, connections: CONNECTIONS, forMs })
  await rate(ours.port, WARM_UP_MS)
  await rate(barePort, WARM_UP_MS)
  const ratios: number[] = []
  const rates: number[] = []
  const bareRates: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const bareRate = await rate(barePort, ROUND_MS)
    const ourRate = await rate(ours.port, ROUND_MS)
    bareRates.push(bareRate)
    rates.push(ourRate)
    ratios.push(ourRate / bareRate)
  }
  const note =
    `${inShort(median(rates))}/s, bare ${inShort(median(bareRates))}/s, ${CONNECTIONS} connections, ` +
    `${ROUNDS} rounds`
  return { name, value: median(ratios), note }
}

async function bodyOf(cluster: LiveCluster, path: string): Promise<string> {
  return (await fetch(`${cluster.url}/api/v1${path}`)).text()
}

async function startBare(answers: { readonly get: string; readonly post: string }) {
  const child = fork(new URL('./bare-server.ts', import.meta.url), [JSON.stringify(answers)])
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message) => resolve(Number(message)))
    child.once('exit', (code) => reject(new Error(`the bare server ended with ${code}`)))
  })
  return { port, end: () => child.disconnect() }
}
