/**
 * The planner: a sweep from a text to a proposal, with equal results twice, and a cancellation; nothing is
 * written to the live cluster.
 */
import type { Locator, Page, Request } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  accessibilityFaults,
  CHROMIUM,
  faultsInEveryLook,
  savedBytes,
  sidewaysPixels,
  type WatchedPage,
} from '../support/browser.ts'
import { busyScenario, temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson } from '../support/served.ts'
import { LONG_SCENARIO } from '../support/simulations-world.ts'

const OBJECTIVE = 'starvation.total<=52'
const MAX_STARVATION = 52
const ui = servedPage(`${temporaryFolder()}/data`)
const scenario = busyScenario()
  .replace('until: 6h', 'until: 90m')
  .replace('rate_per_hour: 20', 'rate_per_hour: 24')
let watched: WatchedPage
let page: Page
/** All requests of any page of this file, except reads. */
const writes: string[] = []

/** Paths that the planner may write to: simulations, traces, and the validation of a text. */
const ALLOWED = new RegExp(
  /^POST \/api\/v1\/(simulations(\/sweep)?|scenarios\/validate|traces)$/.source +
    /|^(PUT|PATCH|DELETE) \/api\/v1\/(simulations|traces)\/[^/]+$/.source,
)

async function writeText(text: string): Promise<void> {
  await page.goto(
    `${ui.url}/planner?source=text&percents=0..100:50&seeds=1..3&keep=${encodeURIComponent(OBJECTIVE)}`,
  )
  await page.getByLabel('Scenario, YAML or JSON').fill(text)
}

async function run(): Promise<void> {
  await page.locator('button.primary:not([aria-disabled])', { hasText: 'Run sweep' }).click()
  await page.waitForURL(/\/planner\/[0-9a-f-]{36}$/)
}

interface Row {
  readonly percent: number
  readonly utilization: number
  readonly objective: number
  readonly hash: string
}

/**
 * The page's own table: overcommit, utilization, starvation, queue wait, wake, objective, hash, with all
 * digits.
 */
async function rows(): Promise<readonly Row[]> {
  const cells = await page
    .locator('#runs tbody tr')
    .evaluateAll((all) => all.map((row) => [...row.querySelectorAll('data')].map((each) => each.value)))
  return cells.map(([percent, utilization, , , , objective, hash]) => ({
    percent: Number(percent),
    utilization: Number(utilization),
    objective: Number(objective),
    hash: hash ?? '',
  }))
}

/**
 * As in docs/planning.md: the value at place ⌈0.95 n⌉ of the objective, then the highest mean utilization,
 * then the lower percentage.
 */
function recommendedFrom(table: readonly Row[]): number | null {
  let best: { percent: number; mean: number } | null = null
  for (const percent of [...new Set(table.map((row) => row.percent))].sort((a, b) => a - b)) {
    const of = table.filter((row) => row.percent === percent)
    const sorted = of.map(({ objective }) => objective).sort((a, b) => a - b)
    if ((sorted[Math.ceil(0.95 * sorted.length) - 1] ?? Infinity) > MAX_STARVATION) continue
    const mean =
      of
        .map(({ utilization }) => utilization)
        .sort((a, b) => a - b)
        .reduce((sum, each) => sum + each, 0) / of.length
    if (best === null || mean > best.mean) best = { percent, mean }
  }
  return best?.percent ?? null
}

/** Two Gantt charts with one axis: the instant under the pointer is shown in both. */
async function expectAligned(): Promise<void> {
  const where = page.getByRole('region', { name: 'GPU timelines' })
  const charts = where.getByRole('group', { name: /: use the arrow keys to select a bar$/ })
  await expect.poll(() => charts.count()).toBe(2)
  const axes = await where
    .locator('figure')
    .evaluateAll((all) => all.map((each) => /\d+:\d\d:\d\d\s*\d+:\d\d:\d\d/.exec(each.innerText)?.[0]))
  expect(new Set(axes).size).toBe(1)
  await charts.nth(0).press('ArrowRight')
  await charts.nth(0).press('ArrowRight')
  await where.getByText(/^Virtual time: \d+:\d\d:\d\d$/).waitFor()
  const standing = where.getByText(
    /^Tasks at this time: \d+ in VRAM, \d+ starting or moving, \d+ swapped out\.$/,
  )
  await expect.poll(() => standing.count()).toBe(2)
  const lines = await charts.evaluateAll((all) =>
    all.map((each) => [...each.querySelectorAll('span')].map((line) => line.style.left).join()),
  )
  expect(lines[0]).toMatch(/%$/)
  expect(lines[1]).toBe(lines[0])
}

interface SeriesAnswer {
  readonly x: readonly number[]
  readonly series: readonly { readonly name: string; readonly values: readonly number[] }[]
}

/**
 * Two percentages over time: the curves come from the series of the runs, the sides are chosen by keys and
 * stored in the address, and each chart is a file.
 */
async function expectBeforeAndAfter(recommended: number): Promise<void> {
  const section = page.getByRole('region', { name: 'Before and after' })
  await expect
    .poll(() => section.getByRole('combobox', { name: /^After/ }).inputValue())
    .toBe(String(recommended))
  expect(await section.getByRole('combobox', { name: /^Before/ }).inputValue()).toBe(
    recommended === 0 ? '50' : '0',
  )
  await section.getByRole('combobox', { name: /^Before/ }).focus()
  await page.keyboard.type('100')
  await page.waitForURL(/before=100/)
  const chart = section.getByRole('group', {
    name: 'Utilization, before and after: use the arrow keys to move between points',
  })
  const at = (seed: number, percent: number): Promise<SeriesAnswer> =>
    getJson(
      `${ui.served.url}/api/v1/simulations/${new URL(page.url()).pathname.split('/').at(-1)}/` +
        `series?overcommit_percent=${percent}&seed=${seed}`,
    )
  // The first interval is a sixtieth of the longest run; values of each series are weighted by their
  // duration.
  const all = await Promise.all([1, 2, 3].flatMap((seed) => [at(seed, 100), at(seed, recommended)]))
  const first = Math.max(...all.map(({ x }) => x.at(-1) ?? 0)) / 60
  const means = all
    .filter((_, index) => index % 2 === 0)
    .map(({ x, series }) => {
      const values = series.find(({ name }) => name === 'utilization_percent')?.values ?? []
      return (
        x.reduce(
          (sum, end, i) => sum + Math.max(0, Math.min(first, end) - (x[i - 1] ?? 0)) * (values[i] ?? 0),
          0,
        ) / first
      )
    })
    .sort((a, b) => a - b)
  // It is redrawn whenever the runs of another seed arrive.
  const said = async (): Promise<string> => {
    await chart.press('Home')
    return (await section.getByText(/^Interval ending at .+: 100%: /).allInnerTexts()).join()
  }
  await expect
    .poll(said)
    .toContain(`100%: ${means[1]?.toFixed(1)}% (${means[0]?.toFixed(1)}% to ${means[2]?.toFixed(1)}%)`)
  await expect.poll(said).toContain(`, ${recommended}%: `)
  const figure = section.getByRole('figure', { name: 'Utilization, before and after' })
  await figure.getByText('Table and export').press('Enter')
  const csv = (await savedBy(figure, 'Save as CSV')).toString('utf8').trimEnd().split('\n')
  expect([csv.length, csv[1]?.split(',').length]).toEqual([61, 7])
  expect(csv[0]).toMatch(/^(minutes|hours) of virtual time,before: 100%,"before: 100%, p10"/)
  expect(Number(csv[1]?.split(',')[1])).toBeCloseTo(means[1] as number, 6)
  expect((await savedBy(figure, 'Save as PNG')).subarray(1, 4).toString('latin1')).toBe('PNG')
  expect(await accessibilityFaults(page)).toEqual([])
}

async function savedBy(figure: Locator, button: string): Promise<Buffer> {
  const saving = page.waitForEvent('download')
  await figure.getByRole('button', { name: button }).press('Enter')
  return savedBytes(await saving)
}

describe.skipIf(CHROMIUM === null)('the planner', () => {
  beforeAll(async () => {
    watched = await ui.browser.page()
    page = watched.page
    page.context().on('request', (request: Request) => {
      const { pathname, searchParams } = new URL(request.url())
      // A plan of the settings changes nothing.
      if (request.method() !== 'GET' && searchParams.get('dry_run') !== 'true')
        writes.push(`${request.method()} ${pathname}`)
    })
  })
  test('shows the errors of a text at their lines, and does not run it', async () => {
    await writeText(scenario.replace('vram_mib: 40960', 'vram_mib: -1'))
    const problem = page.getByRole('list', { name: 'Errors in the text' }).getByRole('button').first()
    await problem.waitFor()
    expect(await problem.textContent()).toMatch(/^Line 6, column \d+$/)
    await page.getByRole('button', { name: 'Run sweep' }).press('Enter')
    expect(new URL(page.url()).pathname).toBe('/planner')
    await problem.press('Enter')
    expect(
      await page.evaluate(
        'document.activeElement.value.slice(document.activeElement.selectionStart, ' +
          'document.activeElement.selectionEnd)',
      ),
    ).toContain('-1')
    // In the form the value is corrected, and the rest of the text is unchanged.
    const form = page.getByRole('region', { name: 'Scenario as a form' })
    await form.getByRole('group', { name: 'Fleet, entry 1' }).getByLabel('VRAM per GPU').fill('40960')
    // An optional value is removed by leaving it empty; a required value stays.
    const area = page.getByLabel('Scenario, YAML or JSON')
    await form.getByLabel('Seed').fill('')
    await form.getByText('Leave the field empty to remove it from the text.').waitFor()
    await page.keyboard.press('Tab')
    await expect.poll(() => area.inputValue()).not.toContain('seed:')
    await form.getByRole('group', { name: 'Fleet, entry 1' }).getByLabel('VRAM per GPU').fill('')
    await form.getByText('This field is required: the value stays 40960.').waitFor()
    await page.keyboard.press('Tab')
    await form.getByLabel('Seed').fill('7')
    await page.getByText('Valid.').waitFor()
    const edited = await area.inputValue()
    const lines = scenario.split('\n')
    expect(edited.split('\n').filter((line) => !lines.includes(line))).toEqual(['seed: 7'])
    await area.fill(edited.replace('vram_mib: 40960', 'vram_mib: 20Gi'))
    await expect
      .poll(() => form.getByRole('group', { name: 'Fleet, entry 1' }).getByLabel('VRAM per GPU').inputValue())
      .toBe('20Gi')
    await area.fill('scenario: [')
    await form.getByText('The form is shown again when the text is valid').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
  })

  test(
    'recommends the best row of its own table, reproducibly, and proposes without writing',
    { timeout: 300_000 },
    async () => {
      const tables: (readonly Row[])[] = []
      for (let time = 0; time < 2; time++) {
        await writeText(scenario)
        await run()
        await page.locator('#runs tbody tr').nth(8).waitFor({ timeout: 60_000 })
        tables.push(await rows())
      }
      const [first = [], second = []] = tables
      expect(first).toHaveLength(9)
      expect(new Set(first.map(({ hash }) => hash)).size).toBeGreaterThan(3)
      expect(second).toEqual(first)
      const recommended = recommendedFrom(first)
      expect(recommended).not.toBeNull()
      expect(await page.locator('[data-recommended]').getAttribute('data-recommended')).toBe(
        String(recommended),
      )
      expect(await page.locator('[data-recommended]').textContent()).toContain(`Overcommit ${recommended}%`)
      expect(await sidewaysPixels(page)).toBeLessThanOrEqual(0)
      expect(await accessibilityFaults(page)).toEqual([])

      const chart = page.getByRole('group', {
        name: 'By overcommit percentage: use the arrow keys to move between points',
      })
      await chart.press('ArrowRight')
      await page.getByText(/^0%: utilization \d/).waitFor()
      await expectBeforeAndAfter(recommended ?? 0)
      await page.getByLabel('Compare 0%, seed 1').check()
      await page.getByLabel('Compare 0%, seed 2').check()
      await page
        .getByRole('region', { name: 'Comparison' })
        .getByRole('rowheader', { name: 'digest' })
        .waitFor()
      await expectAligned()

      const before = await getJson<object>(`${ui.served.url}/api/v1/config`)
      await page.getByRole('link', { name: `Propose ${recommended}%` }).click()
      const field = page.getByLabel('default_vram_overcommit_percent')
      await field.waitFor()
      await expect.poll(() => field.inputValue()).toBe(String(recommended))
      await page.getByText('Proposed: ').waitFor()
      expect(await getJson<object>(`${ui.served.url}/api/v1/config`)).toEqual(before)

      await page.goto(`${ui.url}/planner`)
      const boxes = page.getByRole('region', { name: 'Previous sweeps' }).getByRole('checkbox')
      await boxes.nth(1).check()
      await boxes.nth(0).check()
      await page.getByText('No differences in').waitFor()
    },
  )

  test(
    'varies another field by keyboard, names the best combination, and saves everything',
    { timeout: 300_000 },
    async () => {
      await writeText(scenario)
      const field = page.getByLabel('Other field to vary')
      await expect.poll(() => field.locator('option').count()).toBeGreaterThan(10)
      await field.focus()
      await page.keyboard.type('fleet.0.c')
      await expect.poll(() => field.inputValue()).toBe('fleet.0.count')
      await page.getByText('Value in the scenario: 2.').waitFor()
      expect(await faultsInEveryLook(page)).toEqual([])
      const values = page.getByLabel('Values of fleet.0.count')
      await values.fill('1, 0')
      await page.getByText('3 percentages × 3 seeds × 2 values of fleet.0.count = 18 runs').waitFor()
      await page.locator('button.primary', { hasText: 'Run sweep' }).press('Enter')
      await page.getByRole('alert').getByText('with fleet.0.count=0: fleet[0].count').waitFor()
      await values.fill('1, 3')
      await page.locator('button.primary:not([aria-disabled])', { hasText: 'Run sweep' }).press('Enter')
      await page.waitForURL(/\/planner\/[0-9a-f-]{36}$/)
      const combinations = page.locator('#combinations tbody tr')
      await combinations.nth(1).waitFor({ timeout: 60_000 })
      const best = combinations.filter({ hasText: 'best' })
      expect(await best.count()).toBe(1)
      const sentence = page.getByRole('region', { name: 'Combinations' }).locator('p').first()
      expect(await sentence.textContent()).toMatch(
        /^Best of 2 combinations: fleet\.0\.count=[13]\. Overcommit \d+%.* the highest utilization/,
      )
      expect(await best.getByRole('radio').isChecked()).toBe(true)
      expect(await page.locator('#runs tbody tr').count()).toBe(18)
      expect(await page.locator('#percentages tbody tr').count()).toBe(3)
      await page.getByRole('radio', { name: 'Show fleet.0.count=1' }).press('Space')
      await page.getByRole('heading', { name: 'Recommendation with fleet.0.count=1' }).waitFor()
      expect(new URL(page.url()).searchParams.get('show')).toBe('fleet.0.count=1')
      expect(await faultsInEveryLook(page)).toEqual([])
      await page.getByLabel('Compare 0%, seed 1, fleet.0.count=1').check()
      await page.getByLabel('Compare 0%, seed 1, fleet.0.count=3').check()
      await page
        .getByRole('region', { name: 'Comparison' })
        .getByRole('rowheader', { name: 'fleet.0.count' })
        .waitFor()
      await expectAligned()

      const id = new URL(page.url()).pathname.split('/').at(-1)
      for (const [name, format] of Object.entries({ CSV: 'csv', 'Report (HTML)': 'html', JSON: 'json' })) {
        const saving = page.waitForEvent('download')
        await page
          .getByRole('group', { name: 'Download' })
          .getByRole('button', { name, exact: true })
          .press('Enter')
        const saved = await saving
        expect(saved.suggestedFilename()).toBe(`busy.${format}`)
        const answer = await fetch(`${ui.served.url}/api/v1/simulations/${id}/report?format=${format}`)
        expect((await savedBytes(saved)).toString('utf8')).toBe(await answer.text())
      }
    },
  )

  test('counts the runs of a scenario with its own sweep', { timeout: 300_000 }, async () => {
    const text =
      `${scenario}sweep: { config.idle_swap_out_seconds: [60, 300], config.max_tasks_per_gpu: 2..300 ` + '}\n'
    const counted = (words: string): Promise<void> => page.getByRole('status').getByText(words).waitFor()
    await writeText(text)
    const own = '3 percentages × 3 seeds × 2 values of config.idle_swap_out_seconds'
    await counted(`${own} × 299 values of config.max_tasks_per_gpu = 5382 runs; the limit is 2000.`)
    // A field that is varied here replaces the one of the scenario.
    await page.getByLabel('Other field to vary').selectOption('config.max_tasks_per_gpu')
    await page.getByLabel('Values of config.max_tasks_per_gpu').fill('2')
    await counted(`${own} × 1 value of config.max_tasks_per_gpu = 18 runs. They do not affect`)

    const stored = await fetch(`${ui.served.url}/api/v1/scenarios`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        text: text.replace('scenario: busy', 'scenario: swept').replace('2..300', '[2, 4]'),
      }),
    })
    expect(stored.status).toBe(201)
    await page.goto(`${ui.url}/planner?source=scenario&scenario=swept&percents=0&seeds=1`)
    await counted(
      '1 percentage × 1 seed × 2 values of config.idle_swap_out_seconds × 2 values of ' +
        'config.max_tasks_per_gpu = 4 runs.',
    )
  })

  test('reports a cancelled sweep', { timeout: 300_000 }, async () => {
    await writeText(LONG_SCENARIO)
    await run()
    const cancel = page.getByRole('button', { name: 'Cancel' })
    await page.getByText(/%, (time left unknown|about .+ left)$/).waitFor()
    await cancel.click()
    await page.getByText(/sweep, cancelled/).waitFor()
    await page.getByText('Cancelled by').waitFor()
  })

  test(
    'imports a file as a trace, with its dropped rows by reason, and runs it on the current nodes',
    { timeout: 300_000 },
    async () => {
      await page.goto(`${ui.url}/planner?source=trace&percents=0&seeds=1`)
      await page.getByText('Upload a trace, or use the history of this cluster').click()
      const lines = [
        '; a log',
        '1 0 0 600 1 -1 -1 1 600 -1 1 1 1 1 1 1 -1 -1',
        '2 60 0 600 1 -1 -1 1 600 -1 1 1 1 1 1 1 -1 -1',
        '3 x',
      ]
      await page.getByLabel('File', { exact: true }).setInputFiles({
        name: 'Small Log.swf',
        mimeType: 'text/plain',
        buffer: Buffer.from(`${lines.join('\n')}\n`),
      })
      expect(await page.getByLabel('Trace name').inputValue()).toBe('small-log')
      await page.getByLabel('Format', { exact: true }).selectOption('swf')
      await page.getByRole('button', { name: 'Upload file' }).click()
      await page.getByText('2 tasks from 3 rows, uploaded as swf.').waitFor()
      await page
        .getByRole('group', { name: 'Dropped rows' })
        .getByRole('cell', { name: 'wrong number of fields' })
        .waitFor()
      await run()
      await page.locator('#runs tbody tr').waitFor()
      expect((await page.locator('h1').textContent()) ?? '').toBe('trace-small-log')
    },
  )

  test('runs the current state and the recent history of the cluster', { timeout: 300_000 }, async () => {
    await page.goto(`${ui.url}/planner?source=trace`)
    await page.getByText('Upload a trace, or use the history of this cluster').click()
    await page.getByLabel('Last').selectOption('6')
    await page.getByRole('button', { name: 'Use as trace' }).click()
    await page.getByText(/^\d+ tasks from [\d ]+ rows, uploaded as headroom\.$/).waitFor()
    await page.goto(`${ui.url}/planner?source=live&percents=0&seeds=1`)
    await run()
    await page.locator('#runs tbody tr').waitFor()
  })

  test('writes only simulations and traces, and nothing to the console', () => {
    expect(writes.length).toBeGreaterThan(8)
    expect(writes.filter((each) => !ALLOWED.test(each))).toEqual([])
    // A sweep that was cancelled before its first run ended has no report, and one request had a refused
    // value.
    expect(watched.faults.filter((fault) => !/ (409|400) /.test(fault))).toEqual([])
  })
})
