/** Settings in a browser: what is refused never leaves the page, every change is a plan first, and two people see each other. */
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { CHROMIUM, MAPPED_HOST, TestBrowser } from '../support/browser.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson, putJson, serve } from '../support/served.ts'

const OVERCOMMIT = 'default_vram_overcommit_percent'
const ui = servedPage(`${temporaryFolder()}/data`)

async function settings(): Promise<{ readonly page: Page; readonly sent: string[] }> {
  const { page } = await ui.browser.page()
  const sent: string[] = []
  page.on('request', (request) => {
    if (request.method() !== 'GET') sent.push(`${request.method()} ${new URL(request.url()).pathname}${new URL(request.url()).search}`)
  })
  await page.goto(`${ui.url}/settings`)
  await page.getByLabel(OVERCOMMIT).waitFor()
  return { page, sent }
}

const percentNow = async (): Promise<number> =>
  (await getJson<Record<string, number>>(`${ui.served.url}/api/v1/config`))[OVERCOMMIT] as number
const put = (percent: number) => putJson(`${ui.served.url}/api/v1/config`, { [OVERCOMMIT]: percent })

describe.skipIf(CHROMIUM === null)('settings', () => {
  beforeEach(() => put(30))
  test('what is no percentage is refused in place, and nothing is sent', async () => {
    const { page, sent } = await settings()
    for (const text of ['1001', '-1', '1.5', '', 'abc']) {
      await page.getByLabel(OVERCOMMIT).fill(text)
      await page.getByText('It must be a whole number from 0 to 1000.').waitFor()
      expect(await page.getByRole('button', { name: 'Plan the change' }).isDisabled()).toBe(true)
      await page.getByLabel(OVERCOMMIT).press('Enter')
    }
    expect(sent).toEqual([])
    await page.context().close()
  })

  test('raising is planned, seen, applied and undone, by keyboard alone', async () => {
    const { page, sent } = await settings()
    await page.getByLabel(OVERCOMMIT).fill('60')
    await page.getByLabel(OVERCOMMIT).press('Enter')
    const plan = page.getByRole('region', { name: 'Plan' })
    await plan.getByText('Schedulable VRAM').waitFor()
    expect(await plan.getByRole('table', { name: 'Differences' }).innerText()).toMatch(/30\s*→\s*60/)
    expect(await percentNow()).toBe(30)
    await plan.getByRole('button', { name: 'Apply' }).focus()
    await page.keyboard.press('Enter')
    await expect.poll(percentNow).toBe(60)
    // The page has to have heard of its own change, or the newest revision would still look like one to go back to.
    const { revision } = await getJson<{ readonly revision: number }>(`${ui.served.url}/api/v1/config`)
    await page.getByText(`Revision ${revision}, stored.`).waitFor()
    await page.getByRole('button', { name: `Plan to go back to revision ${revision - 1}`, exact: true }).focus()
    await page.keyboard.press('Enter')
    await plan.getByText('Back to revision').waitFor()
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

  test('lowering asks twice', async () => {
    const { page } = await settings()
    await page.getByLabel(OVERCOMMIT).fill('10')
    await page.getByRole('button', { name: 'Plan the change' }).click()
    const apply = page.getByRole('region', { name: 'Plan' }).getByRole('button', { name: 'Apply' })
    await apply.waitFor()
    expect(await apply.isDisabled()).toBe(true)
    await page.getByRole('checkbox').check()
    await apply.click()
    await expect.poll(percentNow).toBe(10)
    await page.context().close()
  })

  test('two tabs: the second sees the change of the first, and nothing typed is lost', async () => {
    const [first, second] = [await settings(), await settings()]
    await second.page.getByLabel(OVERCOMMIT).fill('80')
    await second.page.getByRole('button', { name: 'Plan the change' }).click()
    await second.page.getByRole('button', { name: 'Apply' }).waitFor()
    await first.page.getByLabel(OVERCOMMIT).fill('40')
    await first.page.getByRole('button', { name: 'Plan the change' }).click()
    await first.page.getByRole('button', { name: 'Apply' }).click()
    await expect.poll(percentNow).toBe(40)
    const conflict = second.page.getByRole('alert', { name: 'Conflict' })
    await conflict.getByText('30 → 40').waitFor()
    expect(await second.page.getByRole('button', { name: 'Apply' }).isDisabled()).toBe(true)
    expect(await second.page.getByLabel(OVERCOMMIT).inputValue()).toBe('80')
    await conflict.getByRole('button', { name: 'Go on from there with what I typed' }).click()
    await second.page.getByRole('button', { name: 'Plan the change' }).click()
    await second.page.getByRole('button', { name: 'Apply' }).click()
    await expect.poll(percentNow).toBe(80)
    for (const { page } of [first, second]) await page.context().close()
  })
})

describe.skipIf(CHROMIUM === null)('before a controller with tokens', () => {
  test('one signs in with a token; a viewer reads, and is told why he may not apply', { timeout: 60_000 }, async () => {
    const data = `${temporaryFolder()}/closed`
    const made = async (name: string, role: string): Promise<string> =>
      (await headroom(['token', 'create', name, '--role', role, '--data-dir', data])).stdout.match(
        /headroom_[a-z2-7]{12}_[\w-]{43}/,
      )?.[0] ?? ''
    const admin = await made('root', 'admin')
    const viewer = await made('vera', 'viewer')
    expect([admin, viewer]).not.toContain('')
    const closed = await serve(data, { CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST })
    const own = await TestBrowser.start()
    try {
      const { page } = await own.page()
      await page.goto(`${closed.url.replace('127.0.0.1', MAPPED_HOST)}/settings`)
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      await page.getByLabel(/A token of this controller/).fill('headroom_wrong')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('This token is not known here').waitFor()
      await page.getByLabel(/A token of this controller/).fill(viewer)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('vera · viewer').waitFor()
      await page.getByLabel(OVERCOMMIT).fill('70')
      await page.getByRole('button', { name: 'Plan the change' }).click()
      await page
        .getByText(/takes the role operator/)
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
