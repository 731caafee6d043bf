/**
 * Every page, light and dark, wide and narrow: no console message, no policy violation, no serious axe
 * finding, no horizontal scrolling.
 */
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TaskPage } from '../../controller/api/tasks/schema.ts'
import { CHROMIUM, faultsInEveryLook, watched } from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson } from '../support/served.ts'

/** Parameters of addresses that are known once the controller runs. */
const ids: Record<string, string> = {}

type Looked = readonly [path: string, heading: string | RegExp, prepare?: (page: Page) => Promise<unknown>]

/** One page of each kind, with the content that must appear before the checks. */
const PAGES: readonly Looked[] = [
  ['/', 'Dashboard'],
  ['/tasks', 'Tasks'],
  ['/tasks/:running', /./, (page) => page.locator('#sentence').waitFor()],
  ['/tasks/:pending', 'waits', (page) => page.locator('#sentence').waitFor()],
  ['/nodes', 'Nodes'],
  // The id of a simulated node is derived from its name.
  ['/nodes/4726aedd-7477-5c50-b7eb-2c660a62cebc', 'a100-0'],
  ['/groups', 'Groups'],
  ['/owners', 'Owners', (page) => page.getByText('What each role sees').click()],
  ['/events', 'Events'],
  ['/planner', 'Planner'],
  ['/planner?source=trace', 'Planner'],
  ['/planner/:sweep', 'thrash-guard', compareTwo],
  ['/simulator', 'Simulator'],
  ['/search?q=a100', 'Search', (page) => page.getByRole('link', { name: 'a100-0' }).waitFor()],
  ['/settings', 'Settings'],
  ['/glossary', 'Glossary'],
  ['/planner/a/b', 'Page not found'],
  ['/simulator/:exercise', 'Dashboard'],
  ['/simulator/:exercise/tasks', 'Tasks'],
  ['/simulator/:exercise/nodes', 'Nodes'],
  ['/simulator/:exercise/groups', 'Groups'],
  ['/simulator/:exercise/owners', 'Owners'],
  ['/simulator/:exercise/events', 'Events'],
  ['/simulator/:exercise/settings', 'Settings'],
  ['/simulator/:exercise/instructor', 'Faults'],
  ['/simulator/:exercise/exercise', /lost node/i],
  [
    '/simulator/:finished',
    'Exercise',
    async (page) => {
      await page.getByTestId('score').waitFor()
      expect(await page.locator('#mode').innerText()).toBe('REPLAY')
    },
  ],
]

async function compareTwo(page: Page): Promise<void> {
  await page.getByLabel('Compare 0%, seed 1').check()
  await page.getByLabel('Compare 50%, seed 1').check()
  await page.getByRole('region', { name: 'Comparison' }).getByRole('rowheader', { name: 'digest' }).waitFor()
}

const ui = servedPage(`${temporaryFolder()}/data`)

describe.skipIf(CHROMIUM === null)('every page', { timeout: 300_000 }, () => {
  // One browser for all of them, as in practice: pages after the first find scripts and styles in the cache.
  let context: BrowserContext

  const post = async (path: string, body?: object): Promise<string> => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    const answer = await fetch(`${ui.served.url}/api/v1${path}`, {
      method: 'POST',
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    expect(answer.ok, path).toBe(true)
    return ((await answer.json()) as { readonly id: string }).id
  }

  beforeAll(async () => {
    context = await ui.browser.context({ width: 390, colorScheme: 'dark' })
    const running = await getJson<TaskPage>(`${ui.served.url}/api/v1/tasks?state=running&limit=1`)
    ids['running'] = running.items[0]?.id ?? ''
    ids['pending'] = await post('/tasks', { name: 'waits', vram_mib: 900_000, command: ['x'] })
    ids['sweep'] = await post('/simulations/sweep', {
      scenario: 'thrash-guard',
      overcommit_percents: [0, 50],
      seeds: [1],
    })
    ids['exercise'] = await post('/exercises/handle-a-lost-node/start')
    ids['finished'] = await post('/exercises/pick-a-percentage/start')
    await post(`/simulations/${ids['finished']}/finish`)
  }, 120_000)
  afterAll(() => context.close())

  test.each(PAGES.map((looked) => [looked[0], looked] as const))('%s', async (path, [, heading, prepare]) => {
    const { page, faults } = await watched(await context.newPage())
    await page.goto(`${ui.url}${path.replace(/:(\w+)/, (_all, name: string) => ids[name] ?? '')}`)
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    await page.locator('#freshness[data-status=live]').waitFor()
    await prepare?.(page)
    expect(await faultsInEveryLook(page)).toEqual([])
    expect(faults).toEqual([])
    await page.close()
  })
})
