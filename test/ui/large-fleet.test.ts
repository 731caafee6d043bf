/** A fleet that exceeds a single response: counts, sums, choices and filters cover all of it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { GroupPageBody } from '../../controller/api/groups/schema.ts'
import type { NodePage } from '../../controller/api/nodes/schema.ts'
import {
  accessibilityFaults,
  CHROMIUM,
  MAPPED_HOST,
  TestBrowser,
  type WatchedPage,
} from '../support/browser.ts'
import { temporaryFolder, write } from '../support/headroom-command.ts'
import { getJson, serve, type Served } from '../support/served.ts'

const NODES = 320
const FLEET = `scenario: wide
version: 1
clock: { until: 1h }
fleet: [{ count: ${NODES}, name: "n-{i}", gpus: 8, gpu: { model: A100-40, vram_mib: 40960 } }]
`
const folder = temporaryFolder()
let served: Served
let browser: TestBrowser
let api: string

async function open(path: string): Promise<WatchedPage> {
  const opened = await browser.page()
  await opened.page.goto(`${served.url.replace('127.0.0.1', MAPPED_HOST)}${path}`)
  await opened.page.locator('#freshness[data-status=live]').waitFor()
  return opened
}

const send = (method: string, path: string, body?: object) =>
  fetch(`${api}${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })

const named = async (name: string) =>
  (await getJson<NodePage>(`${api}/nodes?q=${name}`)).items.find((node) => node.name === name)
    ?.node_id as string

describe.skipIf(CHROMIUM === null)('A fleet of many nodes', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    const fleet = write(folder, 'wide.scenario.yaml', FLEET)
    served = await serve(`${folder}/data`, {
      CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST,
      CONTROLLER_SIMULATED_FLEET: fleet,
    })
    api = `${served.url}/api/v1`
    browser = await TestBrowser.start()
  }, 120_000)
  afterAll(async () => {
    await browser?.end()
    served?.process.kill('SIGTERM')
    await served?.ended
  })

  test('The dashboard gives an all-clear only while no node in the whole list has a condition', async () => {
    const { page, faults } = await open('/')
    const trouble = page.getByRole('region', { name: 'Nodes that need attention' })
    await trouble.getByText(`None: all ${NODES} nodes respond`).waitFor()
    for (const name of ['n-250', 'n-290', 'n-319']) await send('POST', `/nodes/${await named(name)}/cordon`)
    await send('POST', `/nodes/${await named('n-310')}/drain`)
    await trouble.getByRole('link', { name: 'n-319', exact: true }).waitFor()
    await trouble.getByRole('link', { name: '1 draining', exact: true }).waitFor()
    expect(await trouble.innerText()).not.toContain('None: all')
    await trouble.getByRole('link', { name: '4 cordoned', exact: true }).press('Enter')
    const rows = page.getByRole('group', { name: 'Nodes', exact: true }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(4)
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('Groups have sums over all members, and any node can be chosen', async () => {
    const { page, faults } = await open('/groups')
    await page.getByRole('button', { name: 'New group' }).click()
    const editor = page.getByRole('form', { name: 'New group' })
    await editor.getByText('The name must begin with a letter or digit').waitFor()
    await editor.getByLabel('Name').fill('Team vision')
    await editor.getByRole('searchbox', { name: 'Find nodes' }).fill('n-31')
    await editor.getByRole('checkbox', { name: /^n-319 / }).check()
    await editor.getByText('Showing 11 of 11 nodes').waitFor()
    await editor.getByRole('button', { name: 'Select all 11' }).click()
    await editor.getByText('11 selected').waitFor()
    await editor.getByRole('searchbox', { name: 'Find nodes' }).fill('n-2')
    await editor.getByRole('button', { name: 'Select all 111' }).click()
    await editor.getByText('122 selected').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await editor.getByRole('button', { name: 'Plan' }).click()
    await editor.getByText('122 nodes join').waitFor()
    await editor.getByRole('button', { name: 'Apply' }).click()
    const row = page.getByRole('row').filter({ hasText: 'Team vision' })
    await row.getByText('and 114 more').waitFor()
    const { items, common_pool: pool } = await getJson<GroupPageBody>(`${api}/groups`)
    expect([items[0]?.sums.nodes, items[0]?.sums.gpus, pool.nodes, pool.gpus]).toEqual([
      122,
      976,
      NODES - 122,
      8 * (NODES - 122),
    ])
    expect(await row.locator('td.number').allInnerTexts()).toEqual(expect.arrayContaining(['122', '976']))
    const common = page.getByRole('row').filter({ hasText: 'common pool' })
    await expect.poll(() => common.locator('td.number').first().innerText()).toBe(String(NODES - 122))
    expect(faults).toEqual([])
    await page.context().close()
  })
})
