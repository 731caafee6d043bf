/**
 * `get_tasks_p99_ms` and `list_bytes`: 1,250 servers with one message per second, 10,000 placed and 100,000
 * pending tasks, 1,000 submissions a second, and a client that reads pages of tasks.
 */
import { Agent, request } from 'node:http'
import type { DurationMs } from '../../../protocol/units.ts'
import { LiveCluster, until } from '../../support/live-cluster.ts'
import { inShort } from '../stopwatch.ts'
import type { Reading } from '../targets.ts'
import { answersPerSecond, requestBytes } from './closed-loop.ts'
import type { RestMeasure } from './rest-targets.ts'

const NODES = 1_250
const PENDING = 100_000
const POSTS_PER_S = 1_000
const LOAD_MS: DurationMs = 20_000
const READ_EVERY_MS: DurationMs = 20
const UP_WITHIN_MS: DurationMs = 180_000
const PAGES = [
  '/tasks',
  '/tasks?limit=200',
  '/tasks?state=pending&limit=200',
  '/tasks?state=running&limit=50',
  '/tasks?priority=2&limit=50',
]
const LISTS = [
  '/tasks?limit=200',
  '/tasks?state=pending&limit=200',
  '/tasks?state=running&limit=200',
  '/events?limit=200',
  '/tasks',
]
/** Each one fills a GPU. */
const TASK = { vram_mib: 38_000, noswap: 1, command: ['serve'] }
const FLEET = `scenario: crowded
version: 1
seed: 1
fleet:
  - { count: ${NODES}, name: "sim-{i}", gpus: 8,
      gpu: { model: A100-40, vram_mib: 40960, swap: stock-driver } }
`

interface Summary {
  readonly tasks: { readonly by_list: { readonly pending: number } }
}

export async function measureCrowded(): Promise<readonly Reading<RestMeasure>[]> {
  // NODE_OPTIONS only for the controller: --cpu-prof.
  const cluster = await LiveCluster.start({ NODE_OPTIONS: process.env['CONTROLLER_NODE_OPTIONS'] ?? '' })
  try {
    await cluster.send('PUT', '/config', { heartbeat_seconds: 1 })
    await cluster.startFleet(FLEET)
    await fill(cluster)
    const load = submitSteadily(cluster.url)
    const took: number[] = []
    for (const end = performance.now() + LOAD_MS; performance.now() < end;) {
      const before = performance.now()
      await cluster.get(PAGES[took.length % PAGES.length] as string)
      took.push(performance.now() - before)
      await new Promise((resolve) => setTimeout(resolve, READ_EVERY_MS))
    }
    const { answered, refused } = await load.end()
    const sorted = Float64Array.from(took).sort((a, b) => a - b)
    const at = (share: number): number => sorted[Math.floor(share * sorted.length)] ?? NaN
    const posts =
      `${inShort(answered / (LOAD_MS / 1000))} POST/s ` +
      `answered${refused > 0 ? `, ${refused} refused` : ''}`
    const sizes = await Promise.all(
      LISTS.map(
        async (path) => (await (await fetch(`${cluster.url}/api/v1${path}`)).arrayBuffer()).byteLength,
      ),
    )
    return [
      {
        name: 'get_tasks_p99_ms',
        value: at(0.99),
        note:
          `p50 ${at(0.5).toFixed(1)} ms of ${took.length} pages; ${posts}, ${NODES} heartbeats/s, ` +
          `${PENDING} pending`,
      },
      {
        name: 'list_bytes',
        value: Math.max(...sizes),
        note: LISTS.map((path, i) => `${path} ${sizes[i]}`).join(', '),
      },
    ]
  } finally {
    await cluster.controller.end('SIGTERM')
    await cluster.end()
  }
}

/** Every GPU has its task; this many further tasks wait. */
async function fill(cluster: LiveCluster): Promise<void> {
  const port = Number(new URL(cluster.url).port)
  await until(
    'the servers are up',
    async () =>
      (await cluster.get<{ readonly nodes: { readonly up: number } }>('/summary')).nodes.up >= NODES,
    UP_WITHIN_MS,
  )
  const load = {
    port,
    request: requestBytes('POST', '/api/v1/tasks', TASK),
    status: 201,
    connections: 64,
    forMs: 1_000,
  }
  while ((await cluster.get<Summary>('/summary')).tasks.by_list.pending < PENDING)
    await answersPerSecond(load)
}

/** An open loop: a fixed number of requests per second, whether answered or not. */
function submitSteadily(url: string): {
  end(): Promise<{ readonly answered: number; readonly refused: number }>
} {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })
  const body = JSON.stringify(TASK)
  let [sent, answered, refused] = [0, 0, 0]
  const startedAt = performance.now()
  const timer = setInterval(() => {
    for (const due = ((performance.now() - startedAt) * POSTS_PER_S) / 1000; sent < due; sent++) {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length }
      const asked = request(`${url}/api/v1/tasks`, { method: 'POST', agent, headers }, (answer) => {
        answer.resume()
        if (answer.statusCode === 201) answered += 1
        else refused += 1
      })
      asked.once('error', () => (refused += 1))
      asked.end(body)
    }
  }, 5)
  return {
    async end() {
      clearInterval(timer)
      await until('all submissions are answered', () => answered + refused >= sent)
      agent.destroy()
      return { answered, refused }
    },
  }
}
