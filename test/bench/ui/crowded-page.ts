/**
 * The page of a controller with 1,250 simulated servers of 8 GPUs with tasks that start and end, and 100,000
 * waiting tasks: the first page of these tasks, the first tile of the dashboard on a slow computer, and the
 * cost of each second of the dashboard.
 */
import { MAPPED_HOST, TestBrowser } from '../../support/browser.ts'
import { LiveCluster, until } from '../../support/live-cluster.ts'
import { answersPerSecond, requestBytes } from '../rest/closed-loop.ts'
import { nearestRank } from '../../../simulator/kernel/quantile.ts'
import type { Reading } from '../targets.ts'
import { shownWithin, type Shown } from './shown.ts'
import { secondsOfMainThread } from './main-thread.ts'
import type { UiMeasure } from './ui-targets.ts'

const NODES = 1_250
const PENDING = 100_000
const UP_WITHIN_MS = 180_000
const ROUNDS = 7
const SLOWED = 4
const WATCHED_MS = 120_000
const DRY_RUNS = 100
/** Each one fills a GPU. They end one after the other: about 50 per second, and as many are started. */
const taskFor = (seconds: number) => ({
  vram_mib: 38_000,
  noswap: 1,
  command: ['headroom', 'work', `busy=${seconds}s`],
})
const SHORTEST_S = 15
const LENGTHS = 300
/**
 * Tasks of this length are sent while GPUs are free: the first 10,000, which start at once, have many
 * lengths.
 */
const SLICE_MS = 50
const FLEET = `scenario: crowded-page
version: 1
seed: 1
fleet:
  - { count: ${NODES}, name: "sim-{i}", gpus: 8,
      gpu: { model: A100-40, vram_mib: 40960, swap: stock-driver } }
`
const LIST = { path: '/tasks?tab=pending', selector: '[aria-label=Tasks] tbody tr' }
const TILE = { path: '/', selector: '[aria-label="GPUs up"] > p' }

interface Summary {
  readonly nodes: { readonly up: number }
  readonly tasks: { readonly by_list: { readonly pending: number } }
}

export async function measureCrowdedPage(): Promise<readonly Reading<UiMeasure>[]> {
  // NODE_OPTIONS only for the controller: --cpu-prof.
  const env = {
    CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST,
    NODE_OPTIONS: process.env['CONTROLLER_NODE_OPTIONS'] ?? '',
  }
  const cluster = await LiveCluster.start(env)
  const browser = await TestBrowser.start()
  try {
    await cluster.startFleet(FLEET)
    await fill(cluster)
    const url = cluster.url.replace('127.0.0.1', MAPPED_HOST)
    console.log(`${NODES * 8} GPUs are up, ${PENDING} tasks wait`)
    const lists = await rounds(() => shownWithin(browser, url, LIST))
    const tiles = await rounds(() => shownWithin(browser, url, { ...TILE, slowed: SLOWED }))
    const { perSecondMs, longestMs } = await secondsOfMainThread(browser, url, WATCHED_MS)
    const placements = await dryRuns(cluster)
    const [list, tile] = [middle(lists), middle(tiles)]
    const seconds = 'CPU time of the main thread in a second of the dashboard, a tick and all else'
    const { pending } = (await cluster.get<Summary>('/summary')).tasks.by_list
    return [
      {
        name: 'first_page_ms',
        value: list.ms,
        note: `${pending} tasks wait; nothing cached; ${spread(lists)}`,
      },
      { name: 'page_rows', value: Math.max(...lists.map(({ rows }) => rows)), note: 'in the document' },
      {
        name: 'first_tile_ms',
        value: tile.ms,
        note: `CPU ${SLOWED} × slower, nothing cached; ${spread(tiles)}`,
      },
      {
        name: 'first_script_kib',
        value: tile.scriptBytes / 1024,
        note: 'compressed size, with the shared worker',
      },
      { name: 'tick_ms', value: at(perSecondMs, 0.5), note: `median, ${seconds}` },
      { name: 'tick_p99_ms', value: at(perSecondMs, 0.99), note: `of ${perSecondMs.length} seconds` },
      {
        name: 'tick_max_ms',
        value: Math.max(...perSecondMs),
        note: `the worst second; longest task ${longestMs.toFixed(1)} ms`,
      },
      {
        name: 'placement_p95_ms',
        value: at(placements, 0.95),
        note: `of ${DRY_RUNS} dry runs, p50 ${at(placements, 0.5).toFixed(1)} ms`,
      },
    ]
  } finally {
    await browser.end()
    await cluster.end()
  }
}

/** Every GPU has its task; this many further tasks wait. */
async function fill(cluster: LiveCluster): Promise<void> {
  const summary = (): Promise<Summary> => cluster.get<Summary>('/summary')
  await until('the servers are up', async () => (await summary()).nodes.up >= NODES, UP_WITHIN_MS)
  const load = { port: Number(new URL(cluster.url).port), status: 201, connections: 64 }
  for (let [slice, pending] = [0, 0]; pending < PENDING; slice++) {
    const request = requestBytes('POST', '/api/v1/tasks', taskFor(SHORTEST_S + ((slice * 7) % LENGTHS)))
    await answersPerSecond({ ...load, request, forMs: pending === 0 ? SLICE_MS : 1_000 })
    pending = (await summary()).tasks.by_list.pending
  }
}

/** How long each answer to "where would it start?" takes, one after the other. */
async function dryRuns(cluster: LiveCluster): Promise<readonly number[]> {
  const took: number[] = []
  while (took.length < DRY_RUNS) {
    const from = performance.now()
    await cluster.send('POST', '/tasks?dry_run=true', taskFor(1))
    took.push(performance.now() - from)
  }
  return took
}

/** Nearest rank. */
function at(values: readonly number[], share: number): number {
  return nearestRank(sorted(values), 100 * share)
}

async function rounds(measure: () => Promise<Shown>): Promise<readonly Shown[]> {
  const all: Shown[] = []
  while (all.length < ROUNDS) all.push(await measure())
  return all
}

function middle(all: readonly Shown[]): Shown {
  return all.toSorted((a, b) => a.ms - b.ms)[all.length >> 1] as Shown
}

function spread(all: readonly Shown[]): string {
  return `median of ${all.length}: ${sorted(all.map(({ ms }) => ms))
    .map((ms) => ms.toFixed(0))
    .join(' ')}`
}

function sorted(values: readonly number[]): readonly number[] {
  return values.toSorted((a, b) => a - b)
}
