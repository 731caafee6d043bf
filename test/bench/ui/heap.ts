/**
 * `heap_growth_mib`: the memory growth of a page that was open for half an hour. Its clock and the feed run
 * thirty times as fast, so that there are as many ticks, list requests and redraws as in half an hour;
 * garbage is collected before each reading of the heap.
 */
import type { CDPSession, Page } from 'playwright-core'
import { MAPPED_HOST, TestBrowser } from '../../support/browser.ts'
import { LiveCluster, until } from '../../support/live-cluster.ts'
import type { Reading } from '../targets.ts'
import { FastFeed } from './fast-feed.ts'
import type { UiMeasure } from './ui-targets.ts'

const TICKS = 1_800
const FACTOR = 30
const TICK_MS = 1_000 / FACTOR
const WARM_UP_TICKS = 60
/** Number of visits to the other pages and back. */
const TRIPS = 6
const NODES = 32
const TASKS = 3_000
const FLEET = `scenario: half-an-hour
version: 1
seed: 1
fleet:
  - { count: ${NODES}, name: "sim-{i}", gpus: 8,
      gpu: { model: A100-40, vram_mib: 40960, swap: stock-driver } }
`
const MIB = 1024 * 1024

/** Timers of the page, and its source of time. */
const QUICK_CLOCK = `(() => {
  const [later, again] = [setTimeout, setInterval]
  globalThis.setTimeout = (run, ms = 0, ...rest) => later(run, ms / ${FACTOR}, ...rest)
  globalThis.setInterval = (run, ms = 0, ...rest) => again(run, ms / ${FACTOR}, ...rest)
  for (const clock of [Date, performance]) {
    const now = clock.now.bind(clock)
    const from = now()
    clock.now = () => from + (now() - from) * ${FACTOR}
  }
})()`

export async function measureHeap(): Promise<readonly Reading<UiMeasure>[]> {
  const cluster = await LiveCluster.start({ CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST })
  const feed = new FastFeed(cluster.url)
  const browser = await TestBrowser.start()
  try {
    await cluster.startFleet(FLEET, '--task-time', '20s')
    await until(
      'the servers are up',
      async () => (await cluster.nodes()).filter(({ status }) => status === 'up').length === NODES,
    )
    for (let sent = 0; sent < TASKS; sent += 100) {
      const task = { vram_mib: 24_000, command: ['true'] }
      await Promise.all(Array.from({ length: 100 }, () => cluster.send('POST', '/tasks', task)))
    }
    const { page } = await browser.page()
    await page.addInitScript(QUICK_CLOCK)
    let [lists, charts] = [0, 0]
    page.on('response', (answer) => {
      if (/\/api\/v1\/(tasks|nodes)\?/.test(answer.url())) lists += 1
      if (answer.url().includes('/series?')) charts += 1
    })
    await page.goto(`http://${MAPPED_HOST}:${await feed.listen()}/`)
    await page.locator('#freshness[data-status=live]').waitFor()
    const cdp = await page.context().newCDPSession(page)
    await applied(page, await feed.run(WARM_UP_TICKS, TICK_MS))
    await trip(page)
    const before = await heapBytes(cdp)
    const [listsBefore, chartsBefore, nodesBefore] = [lists, charts, await elements(page)]
    for (let time = 0; time < TRIPS; time++) {
      await applied(page, await feed.run(TICKS / TRIPS, TICK_MS))
      await trip(page)
    }
    const after = await heapBytes(cdp)
    const note =
      `${(before / MIB).toFixed(1)} → ${(after / MIB).toFixed(1)} MiB over ${TICKS} ticks, ` +
      `${lists - listsBefore} lists and ` +
      `${charts - chartsBefore} series read, ${TRIPS} times to other pages and back; ${nodesBefore} ` +
      `→ ${await elements(page)} elements`
    return [{ name: 'heap_growth_mib', value: (after - before) / MIB, note }]
  } finally {
    await browser.end()
    feed.end()
    await cluster.end()
  }
}

async function applied(page: Page, revision: number): Promise<void> {
  await page.locator(`[data-revision="${revision}"]`).waitFor()
}

async function trip(page: Page): Promise<void> {
  for (const name of ['Tasks', 'Nodes', 'Groups', 'Events', 'Settings', 'Dashboard']) {
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
    await page.getByRole('heading', { level: 1, name }).waitFor()
  }
  await page.getByRole('figure', { name: 'Queue' }).waitFor()
}

async function heapBytes(cdp: CDPSession): Promise<number> {
  await cdp.send('HeapProfiler.collectGarbage')
  await cdp.send('HeapProfiler.collectGarbage')
  return (await cdp.send('Runtime.getHeapUsage')).usedSize
}

function elements(page: Page): Promise<number> {
  return page.evaluate<number>('document.querySelectorAll("*").length')
}
