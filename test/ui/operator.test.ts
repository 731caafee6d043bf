/**
 * Questions of an operator, from the dashboard to the answer: which node has a problem, how to empty it,
 * which task was swapped out and why, why a task waits.
 */
import { beforeAll, describe, expect, test, vi } from 'vitest'
import type { DecisionBody, DecisionPage } from '../../controller/api/observe/decision-schema.ts'
import type { EventBody, EventPage } from '../../controller/api/observe/event-schema.ts'
import type { NodeBody, NodePage } from '../../controller/api/nodes/schema.ts'
import type { TaskBody } from '../../controller/api/tasks/schema.ts'
import {
  accessibilityFaults,
  CHROMIUM,
  confirmByKey,
  faultsInEveryLook,
  focusedDialog,
  type WatchedPage,
} from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson, putJson } from '../support/served.ts'

const ui = servedPage(`${temporaryFolder()}/data`, { isNew: true })
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-/
let api: string

async function open(path: string): Promise<WatchedPage> {
  const watchedPage = await ui.browser.page({ width: 1280 })
  await watchedPage.page.goto(`${ui.url}${path}`)
  return watchedPage
}

/**
 * Submits a task that waits during the whole test: the only node of its group is cordoned. Tasks of the fleet
 * start at any moment.
 */
async function waitingTask(): Promise<string> {
  const { items } = await getJson<NodePage>(`${api}/nodes`)
  const id = items.at(-1)?.node_id as string
  const headers = { 'content-type': 'application/json' }
  await fetch(`${api}/nodes/${id}/cordon`, { method: 'POST' })
  await fetch(`${api}/groups/closed`, {
    method: 'PUT',
    headers,
    body: JSON.stringify({ description: '', node_ids: [id] }),
  })
  const name = 'waits-for-the-closed-node'
  const body = JSON.stringify({
    name,
    vram_mib: 900,
    groups: ['closed'],
    command: ['headroom', 'work', 'busy=30d'],
  })
  await fetch(`${api}/tasks`, { method: 'POST', headers, body })
  return name
}

const swapsOf = () => getJson<DecisionPage>(`${api}/decisions?kind=swap_out&limit=1`)

describe.skipIf(CHROMIUM === null)('an operator', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    api = `${ui.served.url}/api/v1`
    // The past tasks with which the fleet begins are idle: with overcommit, others replace them.
    await putJson(`${api}/config`, { default_vram_overcommit_percent: 50 })
    await vi.waitFor(async () => expect((await swapsOf()).items.length).toBeGreaterThan(0), {
      timeout: 90_000,
    })
  }, 120_000)

  test('sees which task was swapped out and why, with the names of all candidates', async () => {
    const { page, faults } = await open('/')
    const latest = page.getByRole('region', { name: 'Latest swap-outs' })
    await latest.getByRole('link', { name: /^Why/ }).first().waitFor()
    // Swaps continue during the test: the row is read at once, and its decision is requested by number.
    const { sentence, number } = await latest
      .getByRole('listitem')
      .first()
      .evaluate((row) => ({
        sentence: row.querySelectorAll('span')[1]?.textContent,
        number: Number(/decision (\d+)/.exec(row.textContent ?? '')?.[1]),
      }))
    const decision = await getJson<DecisionBody>(`${api}/decisions/${number}`)
    expect(sentence).toBe(decision.sentence)
    await latest.locator(`a[href$="decision=${number}"]`).press('Enter')
    const opened = page.locator(`#decision-${number}`)
    const candidates = opened.getByRole('group', { name: 'Swap-out candidates' })
    await candidates.waitFor()
    const names = await candidates.locator('tbody td:first-child').allInnerTexts()
    expect(names.map((name) => name.split(' on GPU ')[0])).toEqual(
      decision.candidates.map(({ task_name: name }) => name),
    )
    expect(names.join()).not.toMatch(UUID)
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('reads events with names, and follows a link from a swap to its decision', async () => {
    const { page, faults } = await open('/events?kind=swap_decided')
    const row = page.locator('tbody tr').first()
    await row.waitFor()
    const number = (await row.getAttribute('id'))?.replace('event-', '')
    const decision = await getJson<DecisionBody>(`${api}/decisions/${number}`)
    const text = await row.innerText()
    expect(text).toContain(decision.task_name)
    expect(text).toMatch(/for a [\w -]+, [^,]+ swapped out of GPU \d, .+ missing on GPU \d/)
    expect(text).not.toMatch(UUID)
    await row.getByRole('link', { name: /^why: decision \d+$/ }).press('Enter')
    await page.getByRole('group', { name: 'Swap-out candidates' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('follows a link from an event to its cause, on an older page or on the same page', async () => {
    const swaps = () => getJson<EventPage>(`${api}/events?kind=swap_decided&order=newest&limit=100`)
    // A cause on the same page is focused there, without a change of the address.
    const causedElsewhere = async () => {
      const { items } = await swaps()
      return (
        items.find(({ caused_by: cause }) => cause !== null && !items.some(({ seq }) => seq === cause)) ??
        null
      )
    }
    await expect.poll(causedElsewhere).not.toBeNull()
    const event = (await causedElsewhere()) as EventBody
    const { page } = await open('/events?kind=swap_decided')
    const seq = String(event.caused_by)
    await page.locator(`#event-${event.seq}`).getByRole('link', { name: seq, exact: true }).press('Enter')
    await page.waitForURL(new RegExp(`before=${Number(seq) + 1}`))
    await expect.poll(() => page.locator('tbody tr').first().getAttribute('id')).toBe(`event-${seq}`)
    // The first event has no later one: its cause is below, or on an older page.
    const led = page.locator('tbody tr td:nth-child(5) a').filter({ hasText: /^\d+$/ })
    const near = await led.evaluateAll((all) =>
      all.findIndex((link) => link.ownerDocument.getElementById(`event-${link.textContent}`) !== null),
    )
    if (near >= 0) {
      const to = await led.nth(near).innerText()
      await led.nth(near).press('Enter')
      expect(await page.evaluate('document.activeElement.id')).toBe(`event-${to}`)
    }
    await page.context().close()
  })

  test('finds the node with a problem, drains it by keyboard, and uncordons it', async () => {
    const { items } = await getJson<NodePage>(`${api}/nodes`)
    const id = items[0]?.node_id as string
    const node = () => getJson<NodeBody>(`${api}/nodes/${id}`)
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({
      name: 'movable',
      vram_mib: 900,
      on_node_loss: 'requeue',
      command: ['headroom', 'work', 'busy=30d'],
    })
    const { id: task } = (await (
      await fetch(`${api}/tasks`, { method: 'POST', headers, body })
    ).json()) as TaskBody
    const taskNow = () => getJson<TaskBody>(`${api}/tasks/${task}`)
    await expect.poll(async () => (await taskNow()).state).toBe('running')
    const home = (await taskNow()).placement?.node_id as string
    const at = items.find(({ node_id }) => node_id === home) as NodeBody
    await fetch(`${api}/nodes/${home}/cordon`, { method: 'POST' })
    const { page, faults } = await open('/')
    const trouble = page.getByRole('region', { name: 'Nodes that need attention' })
    await trouble.getByText('cordoned', { exact: true }).waitFor()
    await trouble.getByRole('link', { name: at.name, exact: true }).press('Enter')
    await page.getByRole('heading', { level: 1, name: at.name }).waitFor()

    await page.getByRole('button', { name: 'Drain', exact: true }).press('Enter')
    const dialog = await focusedDialog(page)
    await dialog.getByRole('checkbox').press('Space')
    await dialog.getByLabel('Delay before moving (s)').fill('-1')
    await dialog.getByRole('button', { name: 'Drain', exact: true }).press('Enter')
    await dialog.getByText('Enter a whole number from 0 to 604,800.').waitFor()
    expect((await getJson<NodeBody>(`${api}/nodes/${home}`)).drain).toBeNull()
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByLabel('Delay before moving (s)').fill('0')
    await confirmByKey(page, 'Drain')
    await expect
      .poll(async () => (await getJson<NodeBody>(`${api}/nodes/${home}`)).drain?.moves_at)
      .toBeTruthy()
    // Movable tasks have moved, or wait for another node; the page shows how many are left.
    await expect.poll(async () => (await taskNow()).placement?.node_id).not.toBe(home)
    const left = (await getJson<NodeBody>(`${api}/nodes/${home}`)).drain?.tasks_left
    await page.getByText(left === 0 ? 'up, drained' : new RegExp(`up, draining: \\d+ tasks? left`)).waitFor()
    await page
      .getByRole('region', { name: 'Drain' })
      .getByText(/will keep running until completion/)
      .waitFor()
    expect(await faultsInEveryLook(page)).toEqual([])
    await page.getByRole('button', { name: 'Uncordon', exact: true }).press('Enter')
    await confirmByKey(page, 'Uncordon')
    await expect.poll(async () => (await getJson<NodeBody>(`${api}/nodes/${home}`)).drain).toBeNull()
    await page.getByRole('button', { name: 'Cordon', exact: true }).waitFor()
    expect((await node()).cordoned).toBe(false)
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('reads why and how long pending tasks wait, and the forecast for one task', async () => {
    const name = await waitingTask()
    const { page, faults } = await open('/tasks?tab=pending')
    const rows = page.getByRole('group', { name: 'Tasks', exact: true })
    const row = rows.locator('tbody tr').filter({ hasText: name })
    await row.waitFor()
    const heads = await rows.locator('th').allInnerTexts()
    expect(heads.slice(1, 5)).toEqual(['Name', 'Wait reason', 'Waited', 'Position'])
    expect(await row.locator('td').nth(3).innerText()).toMatch(/^\d+ (min|s|h)|^\d\.\d s/)
    await row.getByRole('link').first().press('Enter')
    const expected = page.getByRole('group', { name: 'Expected start' })
    await expected.waitFor()
    expect(await expected.innerText()).not.toMatch(/[A-Z]{2,}_|forecast=/)
    expect(await faultsInEveryLook(page)).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('tries the current setting and the usual percentages in the planner', async () => {
    await putJson(`${api}/config`, { default_vram_overcommit_percent: 40 })
    const { page } = await open('/planner')
    await expect.poll(() => page.getByLabel('Overcommit percentages').inputValue()).toBe('0..100:25, 40')
    await page.context().close()
  })
})
