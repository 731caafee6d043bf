/**
 * Pages in every state, wide and narrow, light and dark: loading, empty, without a match, with an error, and
 * with old data. No serious finding of axe, no scrolling sideways, and never an all-clear that is not one.
 * `SCANS=all` (`make test-ui`) scans all pages in all states; otherwise one state of each page is drawn.
 */
import type { Page, Route } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'
import type { NodePage } from '../../controller/api/nodes/schema.ts'
import type { TaskPage } from '../../controller/api/tasks/schema.ts'
import { CHROMIUM, closeRouted, faultsInEveryLook, MAPPED_HOST, watched } from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson } from '../support/served.ts'

const STATES = ['loading', 'empty', 'no match', 'error', 'stale'] as const
type State = (typeof STATES)[number]

interface Place {
  readonly path: string
  /** The same page without a match; null: it has no filter. */
  readonly noMatch: string | null
}

const PLACES: readonly Place[] = [
  { path: '/', noMatch: '/?at=2001-01-01T00:00:00Z' },
  { path: '/tasks', noMatch: '/tasks?tab=all&q=there-is-none' },
  { path: '/tasks/:task', noMatch: '/tasks/there-is-none' },
  { path: '/nodes', noMatch: '/nodes?q=there-is-none' },
  { path: '/nodes/:node', noMatch: '/nodes/there-is-none' },
  { path: '/groups', noMatch: null },
  { path: '/owners', noMatch: '/owners?q=there-is-none' },
  { path: '/events', noMatch: '/events?node=there-is-none' },
  { path: '/settings', noMatch: null },
  { path: '/planner', noMatch: '/planner?source=trace&trace=there-is-none' },
  { path: '/planner/there-is-none', noMatch: '/planner/a/b' },
  { path: '/simulator', noMatch: '/simulator/there-is-none' },
  { path: '/search?q=a100', noMatch: '/search?q=there-is-none' },
  { path: '/recovery', noMatch: null },
]

const ALL = PLACES.flatMap((place, at) =>
  STATES.filter((state) => state !== 'no match' || place.noMatch !== null).map(
    (state) => ({ place, state, at }) as const,
  ),
)
const DRAWN =
  process.env['SCANS'] === 'all'
    ? ALL
    : ALL.filter(({ at, state }) => (at + STATES.indexOf(state)) % STATES.length === 0)

const ui = servedPage(`${temporaryFolder()}/data`)
const ids: Record<string, string> = {}

/** Requests that decide who may see the page at all. */
const FRAME = /\/api\/v1\/(auth\/session|version|store-kind)/

/** The name is mapped in the browser only. */
const atHome = (route: Route): string => route.request().url().replace(MAPPED_HOST, '127.0.0.1')

/** Answers with empty lists instead of what there is. */
async function emptied(route: Route): Promise<void> {
  const response = await route.fetch({ url: atHome(route) })
  const type = response.headers()['content-type'] ?? ''
  if (!type.includes('json')) return route.fulfill({ response })
  const body = (await response.json()) as Record<string, unknown>
  if (Array.isArray(body['items'])) Object.assign(body, { items: [], next_cursor: null, total: 0 })
  await route.fulfill({ response, json: body })
}

const refused = (route: Route): Promise<void> =>
  route.fulfill({
    status: 503,
    contentType: 'application/problem+json',
    body: JSON.stringify({
      title: 'Store failed',
      detail: 'The store does not answer.',
      code: 'store_failed',
    }),
  })

async function prepare(page: Page, state: State): Promise<void> {
  // Requests of a shared worker cannot be intercepted: without one the page asks itself.
  await page.addInitScript('delete globalThis.SharedWorker')
  if (state === 'no match' || state === 'stale') return
  await page.route('**/api/v1/**', async (route) => {
    if (FRAME.test(route.request().url())) return route.continue()
    if (state === 'empty') return emptied(route)
    if (state === 'error') return refused(route)
    // loading: no answer comes.
  })
}

async function become(page: Page, state: State): Promise<void> {
  await page.locator('main').getByText(/\S/).first().waitFor()
  if (state !== 'stale') return
  await page.locator('#freshness[data-status=live]').waitFor()
  await page.route('**/api/v1/**', (route) => route.abort())
  await page.locator('#freshness[data-status=reconnecting]').waitFor()
}

describe.skipIf(CHROMIUM === null)('a page', { timeout: 120_000 }, () => {
  beforeAll(async () => {
    const api = `${ui.served.url}/api/v1`
    ids['task'] = (await getJson<TaskPage>(`${api}/tasks?state=running&limit=1`)).items[0]?.id ?? ''
    ids['node'] = (await getJson<NodePage>(`${api}/nodes?limit=1`)).items[0]?.node_id ?? ''
  })

  test.each(DRAWN.map((each) => [each.place.path, each.state, each] as const))(
    '%s is accessible while it is: %s',
    async (path, state, { place }) => {
      const context = await ui.browser.context({ width: 1440 })
      const { page, faults } = await watched(await context.newPage())
      await prepare(page, state)
      const address = (state === 'no match' ? place.noMatch : null) ?? path
      await page.goto(`${ui.url}${address.replace(/:(\w+)/, (_all, name: string) => ids[name] ?? '')}`)
      await become(page, state)
      expect(await faultsInEveryLook(page)).toEqual([])
      expect(faults.filter((fault) => !/^console: Failed to load resource/.test(fault))).toEqual([])
      if (state !== 'empty' && state !== 'no match')
        expect(await page.locator('main').innerText()).not.toMatch(/All nodes are up/)
      // While it is loading, the handlers do not end.
      if (state === 'loading') await context.close()
      else await closeRouted(page)
    },
  )

  test('An all-clear of the dashboard is taken back when the controller does not respond', async () => {
    const context = await ui.browser.context({ width: 1440 })
    const page = await context.newPage()
    await page.addInitScript('delete globalThis.SharedWorker')
    let isAway = false
    await page.route('**/api/v1/**', async (route) => {
      if (isAway) return route.abort()
      if (!/\/summary$/.test(route.request().url())) return route.continue()
      const response = await route.fetch({ url: atHome(route) })
      const summary = (await response.json()) as SummaryBody
      const clear = {
        ...summary,
        nodes: { ...summary.nodes, attention: 0 },
        tasks: {
          ...summary.tasks,
          by_list: { ...summary.tasks.by_list, pending: 0 },
          ended_last_hour: { since: summary.at, failed: 0, lost: 0 },
        },
        pending_by_reason: { ...summary.pending_by_reason, reasons: [] },
      }
      await route.fulfill({ response, json: clear })
    })
    await page.goto(`${ui.url}/`)
    const line = page.locator('#status-line')
    await line.getByText('All nodes are up. No task is waiting, and none failed in the last hour.').waitFor()
    isAway = true
    await line.getByText('The controller does not respond').waitFor()
    expect(await line.innerText()).not.toContain('All nodes are up')
    await closeRouted(page)
  })
})

test('All pages in all states are at least 150 scans', () => {
  // Each of them is scanned wide and narrow, light and dark.
  expect(ALL.length * 4).toBeGreaterThanOrEqual(150)
})
