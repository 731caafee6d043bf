/**
 * The settings page in a browser: refused values are never sent, every change is planned first, and two users
 * see each other's changes.
 */
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import type { ChangeForecastBody } from '../../controller/api/twin/schema.ts'
import { accessibilityFaults, CHROMIUM, closeRouted, MAPPED_HOST, TestBrowser } from '../support/browser.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson, putJson, serve, WITHOUT_HISTORY } from '../support/served.ts'

const OVERCOMMIT = 'default_vram_overcommit_percent'
const ui = servedPage(`${temporaryFolder()}/data`)

async function settings(): Promise<{ readonly page: Page; readonly sent: string[] }> {
  const { page } = await ui.browser.page()
  const sent: string[] = []
  page.on('request', (request) => {
    if (request.method() !== 'GET')
      sent.push(`${request.method()} ${new URL(request.url()).pathname}${new URL(request.url()).search}`)
  })
  await page.goto(`${ui.url}/settings`)
  await page.getByLabel(OVERCOMMIT).waitFor()
  return { page, sent }
}

const percentNow = async (): Promise<number> =>
  (await getJson<Record<string, number>>(`${ui.served.url}/api/v1/config`))[OVERCOMMIT] as number
const put = (percent: number) => putJson(`${ui.served.url}/api/v1/config`, { [OVERCOMMIT]: percent })

describe.skipIf(CHROMIUM === null)('the settings page', () => {
  beforeEach(() => put(30))
  test('refuses an invalid percentage in place, and sends nothing', async () => {
    const { page, sent } = await settings()
    for (const text of ['1001', '-1', '1.5', '', 'abc']) {
      await page.getByLabel(OVERCOMMIT).fill(text)
      await page.getByText('Enter a whole number from 0 to 1,000.').waitFor()
      expect(await page.getByRole('button', { name: 'Plan change' }).isDisabled()).toBe(true)
      await page.getByLabel(OVERCOMMIT).press('Enter')
    }
    expect(sent).toEqual([])
    await page.context().close()
  })

  test('plans, shows, applies and undoes a raised percentage, by keyboard alone', async () => {
    const { page, sent } = await settings()
    await page.getByLabel(OVERCOMMIT).fill('60')
    await page.getByLabel(OVERCOMMIT).press('Enter')
    const plan = page.getByRole('region', { name: 'Plan' })
    await plan.getByText('Schedulable VRAM').waitFor()
    expect(await plan.getByRole('group', { name: 'Differences' }).innerText()).toMatch(/30\s*→\s*60/)
    expect(await percentNow()).toBe(30)
    await plan.getByRole('button', { name: 'Apply' }).focus()
    await page.keyboard.press('Enter')
    await expect.poll(percentNow).toBe(60)
    // The page must have received its own change, or the newest revision would still be offered for a
    // rollback.
    const { revision } = await getJson<{ readonly revision: number }>(`${ui.served.url}/api/v1/config`)
    await page.getByText(`Stored as revision ${revision}.`).waitFor()
    await page.getByRole('button', { name: `Roll back to revision ${revision - 1}`, exact: true }).focus()
    await page.keyboard.press('Enter')
    await plan.getByText('Roll back to revision').waitFor()
    await plan.getByRole('checkbox').check()
    await plan.getByRole('button', { name: 'Apply' }).press('Enter')
    await expect.poll(percentNow).toBe(30)
    expect(sent.map((line) => line.replace(/\d+/g, 'n'))).toEqual([
      'PUT /api/vn/config?dry_run=true',
      'PUT /api/vn/config',
      'POST /api/vn/config/revisions/n/restore?dry_run=true',
      'POST /api/vn/config/revisions/n/restore',
    ])
    await page.context().close()
  })

  test('asks twice before lowering a percentage', async () => {
    const { page } = await settings()
    await page.getByLabel(OVERCOMMIT).fill('10')
    await page.getByRole('button', { name: 'Plan change' }).click()
    const apply = page.getByRole('region', { name: 'Plan' }).getByRole('button', { name: 'Apply' })
    await apply.waitFor()
    expect(await apply.isDisabled()).toBe(true)
    await page.getByRole('checkbox').check()
    await apply.click()
    await expect.poll(percentNow).toBe(10)
    await page.context().close()
  })

  test('shows the change of one tab in another, and keeps typed text', async () => {
    const [first, second] = [await settings(), await settings()]
    await second.page.getByLabel(OVERCOMMIT).fill('80')
    await second.page.getByRole('button', { name: 'Plan change' }).click()
    await second.page.getByRole('button', { name: 'Apply' }).waitFor()
    await first.page.getByLabel(OVERCOMMIT).fill('40')
    await first.page.getByRole('button', { name: 'Plan change' }).click()
    await first.page.getByRole('button', { name: 'Apply' }).click()
    await expect.poll(percentNow).toBe(40)
    const conflict = second.page.getByRole('alert', { name: 'Conflict' })
    await conflict.getByText('30 → 40').waitFor()
    expect(await second.page.getByRole('button', { name: 'Apply' }).isDisabled()).toBe(true)
    expect(await second.page.getByLabel(OVERCOMMIT).inputValue()).toBe('80')
    await conflict.getByRole('button', { name: 'Keep my changes' }).click()
    await second.page.getByRole('button', { name: 'Plan change' }).click()
    await second.page.getByRole('button', { name: 'Apply' }).click()
    await expect.poll(percentNow).toBe(80)
    for (const { page } of [first, second]) await page.context().close()
  })
})

/** As the twin responds: the predicted figures with the current and the changed settings. */
function forecastOf(intervals: number): ChangeForecastBody {
  const column = (value: number): (number | null)[] =>
    Array.from({ length: intervals }, (_, at) => (at === 0 ? null : value + at))
  const course = (before: number, after: number) => ({
    before: { p10: column(before - 1), p50: column(before), p90: column(before + 1) },
    after: { p10: column(after - 1), p50: column(after), p90: column(after + 1) },
  })
  return {
    at: '2026-01-02T03:04:05.000Z',
    horizon_seconds: intervals * 600,
    runs: 8,
    assumes: ['tasks come as in the last day'],
    queue_wait_s: null,
    starvation_percent: null,
    utilization_percent: null,
    swap_outs_per_hour: null,
    sentence: 'Over the next 4.0 hours: starvation falls.',
    courses: {
      ends_seconds: Array.from({ length: intervals }, (_, at) => (at + 1) * 600),
      queue_wait_s: course(300, 100),
      starvation_percent: course(40, 20),
      utilization_percent: course(50, 60),
      swap_outs_per_hour: course(0, 3),
    },
  }
}

describe.skipIf(CHROMIUM === null)('a plan with a forecast', () => {
  test('is drawn: starvation and queue wait before and after, and the values at a point', async () => {
    const { page } = await settings()
    // A twin with too little history says so; this is its later response.
    await page.route(/dry_run=true/, async (route) => {
      const { body } = await putJson(
        `${ui.served.url}/api/v1/config?dry_run=true&forecast=false`,
        route.request().postDataJSON(),
      )
      const { impact } = body as { readonly impact: object }
      await route.fulfill({ json: { ...(body as object), impact: { ...impact, forecast: forecastOf(24) } } })
    })
    await page.getByLabel(OVERCOMMIT).fill('60')
    await page.getByLabel(OVERCOMMIT).press('Enter')
    const forecast = page.getByRole('region', { name: 'Forecast' })
    await forecast.getByText('starvation falls').waitFor()
    const charts = forecast.getByRole('group', { name: /use the arrow keys to move between points$/ })
    expect(await charts.count()).toBe(2)
    await charts.nth(0).press('End')
    await forecast
      .getByText('4 h from now: before 63.0% (62.0% to 64.0%), after 43.0% (42.0% to 44.0%)')
      .waitFor()
    await charts.nth(1).press('Home')
    await forecast.getByText('10 min from now: before — (— to —), after — (— to —)').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await closeRouted(page)
  })
})

describe.skipIf(CHROMIUM === null)('the settings page of a controller with tokens', () => {
  test('accepts a token, and tells a viewer why changes are disabled', { timeout: 300_000 }, async () => {
    const data = `${temporaryFolder()}/closed`
    const made = async (name: string, role: string): Promise<string> =>
      (await headroom(['token', 'create', name, '--role', role, '--data-dir', data])).stdout.match(
        /headroom_[a-z2-7]{12}_[\w-]{43}/,
      )?.[0] ?? ''
    const admin = await made('root', 'admin')
    const viewer = await made('vera', 'viewer')
    expect([admin, viewer]).not.toContain('')
    const closed = await serve(data, { CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST, ...WITHOUT_HISTORY })
    const own = await TestBrowser.start()
    try {
      const { page } = await own.page()
      await page.goto(`${closed.url.replace('127.0.0.1', MAPPED_HOST)}/settings`)
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      await page.getByLabel(/Token for this controller/).fill('headroom_wrong')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('This token is invalid').waitFor()
      await page.getByLabel(/Token for this controller/).fill(viewer)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('vera · viewer').waitFor()
      await page.getByLabel(OVERCOMMIT).fill('70')
      await page.getByRole('button', { name: 'Plan change' }).click()
      await page
        .getByText(/requires (the )?role operator/)
        .first()
        .waitFor()
      expect(await page.content()).not.toContain(viewer)
    } finally {
      await own.end()
      closed.process.kill('SIGTERM')
      await closed.ended
    }
  })
})
