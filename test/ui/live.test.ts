/**
 * The live connection: one for all tabs, with automatic reconnection; the page shows what the API returns.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { BrowserContext, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { EventPage } from '../../controller/api/observe/event-schema.ts'
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'
import { firstRequests } from '../../ui/first-requests.ts'
import { mib, percent, whole } from '../../ui/format/figures.ts'
import { CHROMIUM, savedBytes } from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson } from '../support/served.ts'

const TABS = 9
const KIB = 1024
const ui = servedPage(`${temporaryFolder()}/data`)

/** Readers of streams, as counted by the controller. */
async function streams(): Promise<number> {
  const text = await (await fetch(`${ui.served.url}/metrics`)).text()
  return Number(/^headroom_http_streams (\d+)$/m.exec(text)?.[1] ?? NaN)
}

async function open(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${ui.url}/`)
  await page.locator('#freshness[data-status=live]').waitFor()
  await page.locator('[data-revision]').waitFor()
  return page
}

/** Records the event numbers that the shared worker sends to a page, before the page receives them. */
const HEAR_SEQS = `(() => {
  const heard = (globalThis.heardSeqs = [])
  globalThis.SharedWorker = class extends SharedWorker {
    constructor(...how) {
      super(...how)
      this.port.addEventListener('message', ({ data }) => {
        if (data.kind === 'events') heard.push(...data.events.map(({ seq }) => seq))
      })
    }
  }
})()`

const heardBy = (page: Page) => page.evaluate<number[]>('heardSeqs')
const lastSeq = async () => (await getJson<EventPage>(`${ui.served.url}/api/v1/events?limit=1`)).last_seq
const shownSeqs = (page: Page) =>
  page
    .locator('tbody tr')
    .evaluateAll((rows) => rows.map((row) => Number((row as { id: string }).id.replace('event-', ''))))

async function submitted(name: string): Promise<void> {
  const body = JSON.stringify({ name, vram_mib: 900_000, command: ['x'] })
  await fetch(`${ui.served.url}/api/v1/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
}

async function tile(page: Page, name: string): Promise<string> {
  return (await page.locator(`section[aria-label="${name}"] > p`).first().textContent()) ?? ''
}

describe.skipIf(CHROMIUM === null)('the page', () => {
  test(
    `${TABS} tabs share one connection, which ends with the last of them`,
    { timeout: 300_000 },
    async () => {
      const context = await ui.browser.context()
      const tabs: Page[] = []
      for (let i = 0; i < TABS; i++) tabs.push(await open(context))
      expect(await streams()).toBe(1)
      for (const tab of tabs.slice(1)) await tab.close()
      await expect.poll(streams).toBe(1)
      await context.close()
      await expect.poll(streams).toBe(0)
    },
  )

  test('Figures equal those of the API at the same revision', { timeout: 300_000 }, async () => {
    const context = await ui.browser.context()
    const page = await open(context)
    // The last summary that the page received, and the figures on the page then.
    const told = await page.evaluate<SummaryBody>(`fetch('/api/v1/summary').then((answer) => answer.json())`)
    await expect
      .poll(async () => {
        const now = await getJson<SummaryBody>(`${ui.served.url}/api/v1/summary`)
        const revision = await page.locator('[data-revision]').getAttribute('data-revision')
        if (Number(revision) !== now.revision) return false
        const shown = [
          await tile(page, 'Used VRAM'),
          await tile(page, 'Allocated VRAM'),
          await tile(page, 'Queue'),
        ]
        return (
          JSON.stringify(shown) ===
          JSON.stringify([
            mib(now.vram.used_mib),
            mib(now.vram.committed_mib),
            whole(now.tasks.by_list.pending),
          ])
        )
      })
      .toBe(true)
    expect(await tile(page, 'Physical VRAM')).toBe(mib(told.vram.physical_mib))
    expect(await tile(page, 'Swapped out')).toMatch(/^\d+ MiB$|GiB$/)
    expect(await tile(page, 'GPUs up')).toBe(`${whole(told.gpus.up)} of ${whole(told.gpus.total)}`)
    expect(await tile(page, 'Utilization')).toMatch(
      told.utilization_percent === null ? percent(null) : /^\d+\.\d%$/,
    )
    await context.close()
  })

  test('A chart is saved as CSV and as PNG', { timeout: 300_000 }, async () => {
    const context = await ui.browser.context()
    const page = await open(context)
    const chart = page.getByRole('figure', { name: 'Utilization' })
    await chart.getByText('Table and export').click()
    const saved = async (button: string): Promise<Buffer> => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        chart.getByRole('button', { name: button }).click(),
      ])
      return savedBytes(download)
    }
    expect((await saved('Save as CSV')).toString('utf8')).toMatch(/^time,utilization\n\d{4}-/)
    const png = await saved('Save as PNG')
    expect([png.subarray(1, 4).toString('latin1'), png.length > 1_000]).toEqual(['PNG', true])
    await context.close()
  })

  test('The first requests are sent by the early script, and the page uses exactly those', async () => {
    for (const path of ['/', '/tasks?tab=pending&sort=oldest']) {
      const { page } = await ui.browser.page()
      const asked: string[] = []
      page.on('request', (request) => asked.push(request.url().replace(ui.url, '')))
      await page.goto(`${ui.url}${path}`)
      await page.locator('#freshness[data-status=live]').waitFor()
      const { pathname, search } = new URL(path, ui.url)
      expect(asked).toEqual(
        expect.arrayContaining(['/api/v1/auth/session', ...firstRequests(pathname, search)]),
      )
      // An identical later request uses the early response; an unused response would remain.
      await expect.poll(() => page.evaluate<string[]>('[...headroomEarly.responses.keys()]')).toEqual([])
      await page.context().close()
    }
  })

  test(
    'When the controller is killed, the page says so, keeps its figures, and reconnects',
    { timeout: 300_000 },
    async () => {
      const context = await ui.browser.context()
      await context.addInitScript(HEAR_SEQS)
      const page = await open(context)
      await page.evaluate('window.isTheSamePage = true')
      const log = await context.newPage()
      await log.goto(`${ui.url}/events`)
      await log.locator('tbody tr').first().waitFor()
      const physical = await tile(page, 'Physical VRAM')
      await submitted('before')
      await expect.poll(() => heardBy(page)).toContain(await lastSeq())
      await ui.kill()
      await page.locator('#freshness[data-status=reconnecting]').waitFor()
      expect(await page.locator('#freshness').textContent()).toMatch(/^Reconnecting · data .+ old$/)
      expect(await tile(page, 'Physical VRAM')).toBe(physical)
      await ui.startAgain()
      await page.locator('#freshness[data-status=live]').waitFor()
      await submitted('afterwards')
      const last = await lastSeq()
      for (const tab of [page, log]) {
        await expect.poll(async () => (await heardBy(tab)).at(-1)).toBeGreaterThanOrEqual(last)
        // Each event exactly once: they are numbered consecutively.
        const heard = await heardBy(tab)
        expect(heard).toEqual(heard.map((_, at) => (heard[0] ?? 0) + at))
      }
      await log.getByRole('button', { name: /^\d+ new$/ }).click()
      await expect.poll(() => shownSeqs(log).then((seqs) => seqs[0])).toBeGreaterThanOrEqual(last)
      const shown = await shownSeqs(log)
      expect(shown).toEqual(shown.map((_, at) => (shown[0] ?? 0) - at))
      expect(await page.evaluate('window.isTheSamePage')).toBe(true)
      await context.close()
    },
  )
})

test('The first page needs at most 150 KiB of compressed script', () => {
  const assets = join(import.meta.dirname, '../../dist/ui/assets')
  const html = readFileSync(join(assets, '../index.html'), 'utf8')
  const scripts = readdirSync(assets).filter(
    (name) => name.endsWith('.js') && (html.includes(name) || name.startsWith('feed-worker')),
  )
  expect(scripts.length).toBeGreaterThanOrEqual(2)
  const bytes = scripts.reduce((sum, name) => sum + gzipSync(readFileSync(join(assets, name))).length, 0)
  expect(bytes).toBeLessThanOrEqual(150 * KIB)
})
