/**
 * The report of a sweep as a file in a browser: its scripts read the tables and draw, folded parts are drawn
 * when opened, and nothing is fetched.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { advise } from '../../simulator/experiment/advisor/advisor.ts'
import { DEFAULT_OBJECTIVES } from '../../simulator/experiment/advisor/objective.ts'
import { htmlReport } from '../../simulator/report/html/report.ts'
import { bySettings, summarize } from '../../simulator/experiment/sweep/sweep.ts'
import { chartLibrary } from '../../services/sweep/sweep-report.ts'
import { accessibilityFaults, CHROMIUM, sidewaysPixels, TestBrowser } from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { sweptRun } from '../support/swept-run.ts'

const COMBINATIONS = 6
const CHARTS = 4

function reportFile(): string {
  const runs = Array.from({ length: COMBINATIONS }, (_, i) => ({ 'fleet.0.count': i + 1 })).flatMap(
    (settings) =>
      [0, 50, 100].flatMap((percent) =>
        [1, 2].map((seed) =>
          sweptRun({
            percent,
            seed,
            settings,
            utilization: 40 + percent / 5 + seed,
            starvation: percent / 4 + seed,
            swapsPerHour: 12.5 * percent + seed,
            queueWait: { mean: 1, p50: 100 + percent, p95: 2000 + percent + seed, p99: 1 },
          }),
        ),
      ),
  )
  const advice = bySettings(runs).map((group) => ({
    settings: group.settings,
    ...advise({ runs: group.runs, objectives: DEFAULT_OBJECTIVES, idleness: null }),
  }))
  const file = join(temporaryFolder(), 'report.html')
  writeFileSync(
    file,
    htmlReport({ name: 'plan', runs, summary: summarize(runs), advice, library: chartLibrary() }),
  )
  return file
}

describe.skipIf(CHROMIUM === null)('the report of a sweep in a browser', () => {
  const file = reportFile()
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await TestBrowser.start()
  })
  afterAll(() => browser.end())

  test(
    'draws the visible charts from the tables, and the others when they are opened',
    { timeout: 300_000 },
    async () => {
      const { page, faults } = await browser.page()
      await page.goto(`file://${file}`)
      expect(await page.locator('figure.chart').count()).toBe(COMBINATIONS * CHARTS)
      expect(await page.locator('figure.drawn').count()).toBe(CHARTS)
      const third = page.locator('details').nth(2)
      await page.getByRole('link', { name: 'fleet.0.count=3' }).click()
      await expect.poll(() => third.locator('figure.drawn canvas').count()).toBe(CHARTS)
      // The cursor shows the number of the table: queue wait p95 at the middle of the axis.
      const wait = third.locator('figure', { hasText: 'Queue wait' })
      expect(await wait.locator('.wide tbody tr').nth(1).locator('td').allTextContents()).toEqual(
        ['150.0', '150.0', '150.0', '150.0', '2052', '2051', '2052', '2052'].map(
          (text) => expect.stringContaining(text) as string,
        ),
      )
      await wait.locator('.u-over').hover()
      await expect.poll(() => wait.locator('.u-legend').innerText()).toMatch(/p95:?\s*2052\.00 s/)
      // Redrawn in the other colours, from the same table.
      await page.emulateMedia({ colorScheme: 'dark' })
      await wait.locator('.u-over').hover({ position: { x: 5, y: 5 } })
      await expect.poll(() => wait.locator('.u-legend').innerText()).toMatch(/p95:?\s*2002\.00 s/)
      expect(await sidewaysPixels(page)).toBe(0)
      expect(await accessibilityFaults(page)).toEqual([])
      expect(faults).toEqual([])
    },
  )
})
