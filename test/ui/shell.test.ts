/**
 * The frame around every page, and the pages of an unusual cluster: empty, silent, or without a controller.
 */
import { createServer, type AddressInfo } from 'node:net'
import Database from 'better-sqlite3'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  CHROMIUM,
  faultsInEveryLook,
  MAPPED_HOST,
  TestBrowser,
  type WatchedPage,
} from '../support/browser.ts'
import type { NodePage } from '../../controller/api/nodes/schema.ts'
import { keepKind } from '../../controller/adapters/sqlite/store-kind.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { getJson, serve, WITHOUT_HISTORY, type Served } from '../support/served.ts'

const folder = temporaryFolder()
const SUSPECT_WITHIN = { timeout: 90_000 }
let browser: TestBrowser

/** The address of a broker that does not run. */
async function nobody(): Promise<string> {
  const port = await new Promise<number>((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port: free } = server.address() as AddressInfo
      server.close(() => done(free))
    })
  })
  return `nats://127.0.0.1:${port}`
}

async function served(data: string, env: Readonly<Record<string, string>> = {}): Promise<Served> {
  const fleet = 'CONTROLLER_NATS_URL' in env ? {} : WITHOUT_HISTORY
  return serve(`${folder}/${data}`, { CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST, ...fleet, ...env })
}

/** A simulated cluster is not served to GPU servers; a trial is. */
function makeTrial(path: string): void {
  const db = new Database(path)
  keepKind(db, 'trial')
  db.close()
}

async function end(controller: Served): Promise<void> {
  controller.process.kill('SIGTERM')
  await controller.ended
}

async function open(controller: Served, path: string): Promise<WatchedPage> {
  const opened = await browser.page()
  await opened.page.goto(`${controller.url.replace('127.0.0.1', MAPPED_HOST)}${path}`)
  await opened.page.locator('#freshness[data-status=live]').waitFor()
  return opened
}

const range = (page: Page) => page.getByRole('banner').getByLabel('Time range')

describe.skipIf(CHROMIUM === null)('the frame around every page', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    browser = await TestBrowser.start()
  })
  afterAll(() => browser?.end())

  test('has the mode, the time range if there are charts, and the help behind ?', async () => {
    const controller = await served('simulated')
    const { page, faults } = await open(controller, '/')
    const chip = page.locator('#mode')
    await expect.poll(() => chip.innerText()).toBe('SIM')
    expect(
      await page.evaluate<string>(`getComputedStyle(document.querySelector('#mode')).backgroundImage`),
    ).toContain('repeating-linear')

    await range(page).selectOption('-6h')
    await expect.poll(() => page.url()).toMatch(/\?range=-6h$/)
    await page.keyboard.press('g')
    await page.keyboard.press('n')
    await page.locator('tbody a').first().press('Enter')
    await page.getByRole('region', { name: 'Node charts' }).waitFor()
    await expect.poll(() => page.url()).toMatch(/\/nodes\/[^?]+\?range=-6h$/)
    expect(await range(page).inputValue()).toBe('-6h')
    await range(page).selectOption('-1h')
    await expect.poll(() => page.url()).not.toContain('range')
    await page.keyboard.press('g')
    await page.keyboard.press('t')
    await page.getByRole('heading', { level: 1, name: 'Tasks' }).waitFor()
    expect(await range(page).count()).toBe(0)

    await page.keyboard.press('?')
    const keys = page.getByRole('region', { name: 'Keyboard shortcuts' })
    await keys.waitFor()
    expect(await keys.innerText()).toContain('g t')
    expect(page.url()).toMatch(/\/tasks/)
    expect(faults).toEqual([])
    await end(controller)
  })

  test('shows all times in the local zone or in UTC, as chosen in this browser', async () => {
    const controller = await served('zones')
    const url = controller.url.replace('127.0.0.1', MAPPED_HOST)
    const [{ node_id: id, registered_at: at } = { node_id: '', registered_at: '' }] = (
      await getJson<NodePage>(`${controller.url}/api/v1/nodes`)
    ).items
    const text = (offsetMs: number): string =>
      new Date(Date.parse(at) + offsetMs).toISOString().slice(0, 19).replace('T', ' ')
    const { page, faults } = await browser.page({ timezoneId: 'Asia/Kolkata' })
    await page.goto(`${url}/nodes/${id}`)
    const seen = page.getByRole('region', { name: 'Details' })
    await seen.getByText(text(5.5 * 3_600_000), { exact: true }).waitFor()
    const ago = seen.getByText(/ ago$/)
    expect(await ago.getAttribute('title')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)

    await page.getByRole('button', { name: 'Times: local, UTC+05:30' }).click()
    await seen.getByText(`${text(0)}Z`, { exact: true }).waitFor()
    expect(await ago.getAttribute('title')).toMatch(/Z$/)
    const chart = page.getByRole('figure', { name: 'Utilization' })
    await expect.poll(() => chart.getByRole('status').innerText()).toMatch(/:\d\dZ: /)
    await page.reload()
    await seen.getByText(`${text(0)}Z`, { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Times: UTC' }).click()
    await seen.getByText(text(5.5 * 3_600_000), { exact: true }).waitFor()

    // A virtual clock has no local time.
    const started = await fetch(`${controller.url}/api/v1/exercises/handle-a-lost-node/start`, {
      method: 'POST',
    })
    const { id: session } = (await started.json()) as { readonly id: string }
    await page.goto(`${url}/simulator/${session}`)
    const fixed = page.getByRole('button', { name: 'Times: UTC' })
    await fixed.press('Enter')
    expect(await fixed.getAttribute('title')).toBe('Virtual time is always shown in UTC.')
    await page.getByRole('link', { name: 'Exit session' }).click()
    await page.getByRole('button', { name: 'Times: local, UTC+05:30' }).waitFor()
    expect(faults).toEqual([])
    await end(controller)
  })

  test('finds tasks, nodes, pages, settings and actions with Ctrl K, and gives the focus back', async () => {
    const controller = await served('palette')
    const { page, faults } = await open(controller, '/tasks')
    const field = page.getByRole('combobox', { name: 'Find anything' })
    const options = page.getByRole('listbox', { name: 'Found' }).getByRole('option')
    const focused = () => page.evaluate<string>('document.activeElement.getAttribute("aria-label") ?? ""')
    const find = async (text: string): Promise<void> => {
      await page.keyboard.press('Control+k')
      await field.fill(text)
    }
    await page.getByRole('searchbox', { name: 'Search tasks and nodes' }).focus()
    await page.keyboard.press('Control+k')
    await options.filter({ hasText: 'Submit task' }).waitFor()
    expect(await faultsInEveryLook(page)).toEqual([])
    await page.keyboard.press('Escape')
    await field.waitFor({ state: 'detached' })
    await expect.poll(focused).toBe('Search tasks and nodes')

    await find('l40s-0')
    // The exact name comes first.
    await expect.poll(() => options.first().innerText()).toContain('l40s-0')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'l40s-0' }).waitFor()
    await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Nodes' }).waitFor()
    expect(await page.title()).toBe('l40s-0 · Headroom')

    await find('safety reserve')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('field-safety_reserve_mib')

    await find('theme dark')
    await page.keyboard.press('Enter')
    await page.locator(':root[data-theme=dark]').waitFor()

    await find('glossary')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.title()).toBe('Glossary · Headroom')

    await find('submit')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Submit task' }).waitFor()
    await page.keyboard.press('Escape')

    await find('there is no such name')
    await page.getByText('Nothing matches.').waitFor()
    await page.keyboard.press('Escape')
    expect(faults).toEqual([])
    await end(controller)
  })

  test('does not scroll the page behind an open dialog', async () => {
    const controller = await served('behind')
    const { page, faults } = await open(controller, '/settings')
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
    await page.setViewportSize({ width: 900, height: 400 })
    const scrolled = () => page.evaluate<number>('scrollY')
    const turnWheel = async (): Promise<void> => {
      await page.mouse.move(880, 380)
      await page.mouse.wheel(0, 200)
      // The wheel's effect comes with a later frame.
      await page.evaluate('new Promise((done) => setTimeout(() => requestAnimationFrame(done), 300))')
    }
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find anything' }).waitFor()
    await turnWheel()
    expect(await scrolled()).toBe(0)
    await page.keyboard.press('Escape')
    await page.getByRole('combobox', { name: 'Find anything' }).waitFor({ state: 'detached' })
    await turnWheel()
    await expect.poll(scrolled).toBeGreaterThan(0)
    expect(faults).toEqual([])
    await end(controller)
  })

  test('keeps what is typed while the palette is on its way', async () => {
    const controller = await served('slow-palette')
    const { page, faults } = await open(controller, '/tasks')
    const held = Promise.withResolvers<void>()
    await page.route(/palette/, async (route) => {
      await held.promise
      await route.continue()
    })
    await page.getByRole('heading', { level: 1, name: 'Tasks' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('glos')
    held.resolve()
    const field = page.getByRole('combobox', { name: 'Find anything' })
    await expect.poll(() => field.inputValue()).toBe('glos')
    await page.keyboard.type('sary')
    await expect.poll(() => field.inputValue()).toBe('glossary')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.title()).toBe('Glossary · Headroom')
    // The script is there now, and the field has the focus only a moment after the palette is shown.
    for (const word of ['settings', 'simulations', 'events']) {
      await page.keyboard.press('Control+k')
      await page.keyboard.type(word)
      await expect.poll(() => field.inputValue()).toBe(word)
      await page.keyboard.press('Escape')
      await field.waitFor({ state: 'detached' })
    }
    expect(faults).toEqual([])
    await end(controller)
  })

  test('says in a cluster without servers how to add one, in a line that can be copied', async () => {
    const broker = await nobody()
    const controller = await served('empty', { CONTROLLER_NATS_URL: broker })
    const { page, faults } = await open(controller, '/')
    for (const place of ['/', '/nodes']) {
      await page.goto(`${controller.url.replace('127.0.0.1', MAPPED_HOST)}${place}`)
      await page.getByRole('button', { name: 'Copy command' }).press('Enter')
      await page.getByText('Copied.').waitFor()
      expect(await page.evaluate<string>('getSelection().toString().trim()')).toBe(
        `CONTROLLER_NATS_URL=nats://${MAPPED_HOST}:${new URL(broker).port} NODE_NAME=gpu-1 headroom ` +
          'gpu-server --allow-exec',
      )
    }
    expect(await faultsInEveryLook(page)).toEqual([])
    expect(faults).toEqual([])
    await end(controller)
  })

  test('never shows a trial as a live cluster, also if it replaces one under an open page', async () => {
    const broker = await nobody()
    const live = await served('kind-live', { CONTROLLER_NATS_URL: broker })
    const { page, faults } = await open(live, '/nodes')
    const chip = page.locator('#mode')
    const stripes = () =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('#mode')).backgroundImage`)
    await expect.poll(() => chip.innerText()).toBe('LIVE')
    await page.getByRole('banner').getByText('Live cluster: simulated GPU servers cannot join.').waitFor()
    expect(await stripes()).toBe('none')
    expect(faults).toEqual([])
    await end(live)
    const port = new URL(live.url).port
    const trial = await served('kind-trial', {
      ...{ CONTROLLER_NATS_URL: broker, CONTROLLER_STORE_KIND: 'trial', CONTROLLER_HTTP_PORT: port },
    })
    await expect.poll(() => chip.innerText()).toBe('TRIAL')
    await page.getByRole('banner').getByText('Trial: simulated GPU servers join over the broker').waitFor()
    expect(await stripes()).toContain('repeating-linear')
    const line = `headroom sim serve SCENARIO --nats nats://${MAPPED_HOST}:${new URL(broker).port}`
    await page.getByText(line, { exact: true }).waitFor()
    expect(await faultsInEveryLook(page)).toEqual([])
    await end(trial)
  })

  test('loads a page when the controller returns, without a click', async () => {
    const controller = await served('away')
    const { page } = await open(controller, '/tasks')
    // The other pages have been fetched by then.
    const fetched = () =>
      page.evaluate<string>(`performance.getEntriesByType('resource').map(({ name }) => name).join(' ')`)
    await expect.poll(fetched).toMatch(/\/settings-.*\/search-/)
    controller.process.kill('SIGKILL')
    await controller.ended
    await page.locator('#freshness[data-status=reconnecting]').waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    await page.getByText('The controller does not respond.').waitFor()
    const again = await served('away', { CONTROLLER_HTTP_PORT: new URL(controller.url).port })
    await page.getByRole('textbox', { name: /^VRAM overcommit/ }).waitFor()
    await end(again)
  })

  test('opens a page whose script could not be fetched once it is available, without a reload', async () => {
    const controller = await served('script')
    const { page } = await browser.page()
    let isBlocked = true
    await page.route(/\/assets\/nodes-.*\.js$/, (route) => (isBlocked ? route.abort() : route.continue()))
    await page.goto(`${controller.url.replace('127.0.0.1', MAPPED_HOST)}/tasks`)
    await page.locator('#freshness[data-status=live]').waitFor()
    await page.evaluate('window.isTheSamePage = true')
    await page.getByRole('link', { name: 'Nodes', exact: true }).press('Enter')
    await page.getByText('This page could not be loaded').waitFor()
    await page.getByRole('link', { name: 'Groups', exact: true }).press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor()
    await page.getByRole('link', { name: 'Nodes', exact: true }).press('Enter')
    await page.getByText('This page could not be loaded').waitFor()
    isBlocked = false
    await page.getByRole('heading', { level: 1, name: 'Nodes' }).waitFor()
    expect(await page.evaluate('window.isTheSamePage')).toBe(true)
    await end(controller)
  })

  test('leads from the number of nodes that are not up to the silent nodes', async () => {
    // The nodes of the simulated fleet, which no controller contacts any more.
    await end(await served('silent'))
    makeTrial(`${folder}/silent/headroom.db`)
    const controller = await served('silent', {
      CONTROLLER_NATS_URL: await nobody(),
      CONTROLLER_STORE_KIND: 'trial',
    })
    const { page } = await open(controller, '/')
    const count = page.getByRole('link', { name: /not up$/ })
    await count.waitFor(SUSPECT_WITHIN)
    await count.press('Enter')
    await expect.poll(() => page.url()).toMatch(/#trouble$/)
    const trouble = page.getByRole('region', { name: 'Nodes that need attention' })
    await trouble.getByText('last seen').first().waitFor()
    // Tile and chart differ while nodes are silent; the tile shows the difference.
    await page
      .getByRole('region', { name: 'Physical VRAM' })
      .getByText('0 MiB on nodes that are up')
      .waitFor()
    await end(controller)
  })
})
