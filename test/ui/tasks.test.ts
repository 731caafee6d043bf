/** The list of tasks and the page of a task, with a controller and a simulated fleet. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { Page } from 'playwright-core'
import type { ExplanationBody } from '../../controller/api/observe/explanation-schema.ts'
import type { TaskBody, TaskPage } from '../../controller/api/tasks/schema.ts'
import {
  accessibilityFaults,
  CHROMIUM,
  confirmByKey,
  faultsInEveryLook,
  focusedDialog,
  savedBytes,
  sidewaysPixels,
  type WatchedPage,
} from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson } from '../support/served.ts'

const MARKUP = '<img src=x onerror="window.broken=1"><b>bold</b>'
const RIGHT_TO_LEFT = 'مهمة \u202eabc'
const EMOJI = '🚀👩‍👩‍👧'
const LONG = 'x'.repeat(200)
/** Larger than any GPU: they wait without end. */
const NEVER_FITS_MIB = 900_000
/** More than a page. */
const FILLERS = 160

const ui = servedPage(`${temporaryFolder()}/data`)
let api: string
const ids = new Map<string, string>()

async function submit(name: string, more: object = {}): Promise<string> {
  const body = JSON.stringify({ name, vram_mib: NEVER_FITS_MIB, command: ['x'], ...more })
  const answer = await fetch(`${api}/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  const { id } = (await answer.json()) as TaskBody
  ids.set(name, id)
  return id
}

async function open(path: string, width = 1440): Promise<WatchedPage> {
  const watchedPage = await ui.browser.page({ width })
  await watchedPage.page.goto(`${ui.url}${path}`)
  return watchedPage
}

const rows = (page: Page) => page.getByRole('group', { name: 'Tasks', exact: true }).locator('tbody tr')

describe.skipIf(CHROMIUM === null)('the task pages', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    api = `${ui.served.url}/api/v1`
    await Promise.all(Array.from({ length: FILLERS }, (_, at) => submit(`filler-${at}`, { priority: 4 })))
    for (const name of [MARKUP, RIGHT_TO_LEFT, EMOJI, LONG])
      await submit(name, { labels: { team: 'odd' }, priority: 1 })
  })
  test('show at most 150 rows, and other rows on the next page', async () => {
    const { page, faults } = await open('/tasks?tab=pending&sort=name')
    // The name: the time that a task has waited changes.
    const firstName = () => rows(page).locator('.name').first().innerText()
    const first = await firstName()
    expect(await rows(page).count()).toBeLessThanOrEqual(150)
    await page.getByRole('button', { name: 'Next' }).click()
    await page.waitForURL(/cursor=/)
    await expect.poll(firstName).not.toBe(first)
    await page.getByRole('button', { name: 'Back' }).click()
    await expect.poll(firstName).toBe(first)
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('show markup, right-to-left text, emoji and long names as text', async () => {
    const { page, faults } = await open('/tasks?tab=pending&label=team%3Dodd', 390)
    await expect.poll(() => rows(page).count()).toBe(4)
    const names = await rows(page).locator('td .name').allInnerTexts()
    expect(new Set(names.map((name) => name.trim()))).toEqual(new Set([MARKUP, RIGHT_TO_LEFT, EMOJI, LONG]))
    expect(await page.evaluate('window.broken')).toBeUndefined()
    expect(await page.locator('table img, table b').count()).toBe(0)
    expect(await sidewaysPixels(page)).toBeLessThanOrEqual(0)
    const tasks = await getJson<TaskPage>(`${api}/tasks?state=pending&label=team%3Dodd`)
    expect(tasks.total).toBe(4)
    expect(await rows(page).first().innerText()).toContain('878.9 GiB')
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('keep rows in place under the pointer: new rows are counted, and shown on request', async () => {
    const { page } = await open('/tasks?tab=pending&owner=&q=filler')
    await rows(page).first().waitFor()
    const first = await rows(page).first().locator('.name').innerText()
    await rows(page).nth(3).hover()
    await submit('filler-late')
    const pending = page.getByRole('button', { name: /^Show \d+ pending updates?$/ })
    await pending.waitFor()
    expect(await rows(page).first().locator('.name').innerText()).toBe(first)
    // With the keyboard: the pointer stays in the table.
    await pending.press('Enter')
    await expect.poll(() => rows(page).first().locator('.name').innerText()).toBe('filler-late')
    await page.context().close()
  })

  test('lead from a counted reason of the dashboard to exactly the counted tasks', async () => {
    const { page, faults } = await open('/')
    const reason = page.getByRole('link', { name: 'requires more VRAM than any GPU can ever admit' })
    await reason.waitFor()
    const countedNow = async () =>
      Number(await page.getByRole('row').filter({ has: reason }).locator('td.number').innerText())
    // On a busy machine one count may end early; it is repeated every second.
    let counted = Number.NaN
    await expect.poll(async () => (counted = await countedNow())).toBeGreaterThanOrEqual(FILLERS)
    await reason.click()
    await page.getByText(` shown of ${counted}`).waitFor()
    expect(await page.getByLabel('Wait reason').inputValue()).toBe('NEVER_FITS')
    const cells = await rows(page).locator('td:nth-child(3)').allInnerTexts()
    expect(new Set(cells)).toEqual(new Set(['requires more VRAM than any GPU can ever admit']))
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('find tasks and nodes by name and by id with the search field, by keyboard alone', async () => {
    const { page, faults } = await open('/groups')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('filler')
    await page.keyboard.press('Enter')
    const tasks = page.getByRole('region', { name: 'Tasks' })
    await tasks.getByRole('listitem').first().waitFor()
    expect(await tasks.getByRole('listitem').count()).toBe(10)
    expect(await page.getByRole('region', { name: 'Nodes' }).innerText()).toContain('None.')
    const field = page.getByRole('searchbox', { name: 'Search tasks and nodes' })
    expect(await field.inputValue()).toBe('filler')
    await field.fill(ids.get(MARKUP) as string)
    await field.press('Enter')
    // The only result with exactly this id is opened at once.
    await page.getByRole('heading', { level: 1, name: MARKUP }).waitFor()
    expect(await field.inputValue()).toBe('')
    await field.fill('no such name')
    await field.press('Enter')
    await page.getByText('No task or node has').waitFor()
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('do one action for the selected tasks after one question, with a result for each', async () => {
    for (const name of ['bulk-a', 'bulk-b', 'bulk-c']) await submit(name)
    const { page, faults } = await open('/tasks?tab=all&q=bulk-')
    await rows(page).nth(2).waitFor()
    await page.getByRole('checkbox', { name: 'Select bulk-a' }).check()
    await page.getByRole('checkbox', { name: 'Select bulk-b' }).check()
    // One of them is cancelled by another client meanwhile.
    await fetch(`${api}/tasks/${ids.get('bulk-b') ?? ''}`, { method: 'DELETE' })
    await rows(page).filter({ hasText: 'bulk-b' }).getByText('cancelled').first().waitFor()
    const selected = page.getByRole('group', { name: 'Selected tasks' })
    await selected.getByText('2 tasks selected').waitFor()
    await selected.getByRole('button', { name: 'Cancel…' }).press('Enter')
    const question = await focusedDialog(page)
    await question.getByText('1 pending task', { exact: true }).waitFor()
    await question.getByText('1 task is skipped').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await confirmByKey(page, 'Cancel 1 task')
    const results = page.getByRole('region', { name: 'Results' })
    await results.getByRole('heading', { name: '1 of 2 done' }).waitFor()
    await results.getByRole('row', { name: /bulk-b Skipped: The task is already cancelled/ }).waitFor()
    await results.getByRole('row', { name: 'bulk-a Cancelled' }).waitFor()
    const states = await Promise.all(
      ['bulk-a', 'bulk-c'].map(
        async (name) => (await getJson<TaskBody>(`${api}/tasks/${ids.get(name)}`)).state,
      ),
    )
    expect(states).toEqual(['cancelled', 'pending'])
    expect(await selected.count()).toBe(0)
    expect(await faultsInEveryLook(page)).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('hide columns in this browser and in links, and save all matching rows', async () => {
    const { page, faults } = await open('/tasks?tab=pending&q=filler')
    await rows(page).first().waitFor()
    const heads = () => page.getByRole('columnheader').allInnerTexts()
    expect(await heads()).toContain('Owner')
    await page.getByText('Columns', { exact: true }).click()
    await page.getByRole('group', { name: 'Columns shown' }).getByLabel('Owner').uncheck()
    await expect.poll(heads).not.toContain('Owner')
    expect(page.url()).toContain('hide=Owner')
    // Another visit without the parameter.
    await page.goto(`${ui.url}/tasks?tab=pending&q=filler`)
    await rows(page).first().waitFor()
    expect(await heads()).not.toContain('Owner')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV' }).click(),
    ])
    const lines = (await savedBytes(download)).toString().trim().split('\n')
    expect(download.suggestedFilename()).toBe('tasks.csv')
    expect(lines.length - 1).toBe((await getJson<TaskPage>(`${api}/tasks?state=pending&q=filler`)).total)
    const chip = page.getByRole('list', { name: 'Filters that apply' })
    await chip.getByText('name: filler').waitFor()
    await chip.getByRole('button', { name: 'Remove the filter name: filler' }).press('Enter')
    await expect.poll(() => page.url()).not.toContain('filler')
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('report filters without matches', async () => {
    const { page } = await open('/tasks?tab=all&q=there-is-no-such-name')
    await page.getByText('No tasks match these filters.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await rows(page).first().waitFor()
    await page.context().close()
  })

  test('explain a task: the sentence, each node, possible changes, and the JSON', async () => {
    const id = ids.get(MARKUP) as string
    const { page, faults } = await open(`/tasks/${id}`)
    await page.getByRole('heading', { level: 1, name: MARKUP }).waitFor()
    const explanation = await getJson<ExplanationBody>(`${api}/tasks/${id}/explain`)
    await page.locator('#sentence').waitFor()
    expect(await page.locator('#sentence').innerText()).toBe(explanation.sentence)
    const nodes = page.getByRole('group', { name: 'Nodes', exact: true })
    expect(await nodes.locator('tbody tr').count()).toBe(explanation.verdicts?.nodes.length)
    // Free VRAM and admitted VRAM are two figures: a part may be reserved.
    const heads = await nodes.locator('thead th').allInnerTexts()
    expect(heads.slice(5, 7)).toEqual(['Free', 'Largest fit now'])
    const [first] = explanation.verdicts?.nodes ?? []
    const lines = await nodes.locator('tbody tr').first().locator('td').nth(5).locator('div').count()
    expect(lines).toBe(first?.gpus.length)
    const change = explanation.would_fit_if?.changes[0]?.sentence ?? 'missing'
    expect(await page.getByRole('listitem').filter({ hasText: change }).count()).toBe(1)
    await page.getByText('As JSON').click()
    expect(JSON.parse(await page.locator('pre').first().innerText())).toMatchObject({ task_id: id })
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('ask by keyboard before hold, priority and cancel, and then do it', async () => {
    const id = await submit('to-be-changed', { priority: 3 })
    const { page, faults } = await open(`/tasks/${id}`)
    await page.getByRole('button', { name: 'Hold' }).press('Enter')
    expect((await getJson<TaskBody>(`${api}/tasks/${id}`)).held).toBe(false)
    const dialog = await focusedDialog(page)
    await dialog.getByText('The task is not placed until it is released.').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Hold' }).press('Enter')
    await confirmByKey(page, 'Hold')
    await expect.poll(async () => (await getJson<TaskBody>(`${api}/tasks/${id}`)).held).toBe(true)
    await page.getByText('pending, on hold').waitFor()

    await page.getByRole('button', { name: 'Priority…' }).click()
    await dialog.getByLabel('Priority').selectOption('1')
    await dialog.getByRole('button', { name: 'Set P1' }).click()
    await expect.poll(async () => (await getJson<TaskBody>(`${api}/tasks/${id}`)).priority).toBe(1)

    await page.getByRole('button', { name: 'Cancel task' }).click()
    await dialog.getByRole('button', { name: 'Cancel task' }).click()
    await expect.poll(async () => (await getJson<TaskBody>(`${api}/tasks/${id}`)).state).toBe('cancelled')
    await dialog.waitFor({ state: 'detached' })
    const again = page.getByRole('button', { name: 'Cancel task' })
    await expect.poll(() => again.getAttribute('title')).toBe('The task is already cancelled.')
    expect(await again.getAttribute('aria-disabled')).toBe('true')
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('offer noswap, swap-out and swap-in, hold and release, and output, by keyboard alone', async () => {
    // Its work is soon idle, and for longer than the past with which the simulated fleet begins.
    const id = await submit('by-hand', {
      vram_mib: 2_000,
      priority: 0,
      command: ['headroom', 'work', 'busy=1s', 'idle=30d'],
    })
    const waits = await submit('waits-by-hand')
    const task = (which = id) => getJson<TaskBody>(`${api}/tasks/${which}`)
    await expect.poll(async () => (await task()).placement?.wants_gpu).toBe(false)
    const { page, faults } = await open(`/tasks/${id}`)
    const act = async (name: string): Promise<void> => {
      const button = page.getByRole('button', { name, exact: true })
      await button.and(page.locator(':not([aria-disabled=true])')).waitFor()
      await button.press('Enter')
      await confirmByKey(page, name)
    }
    await act('Swap out')
    await expect.poll(async () => (await task()).residency).toBe('swapped_out')
    await act('Swap in')
    await expect.poll(async () => (await task()).residency).toBe('resident')
    await act('Set noswap 1')
    await expect.poll(async () => (await task()).noswap).toBe(1)
    await act('Set noswap 0')
    await expect.poll(async () => (await task()).noswap).toBe(0)
    await page.getByRole('link', { name: 'Logs' }).press('Enter')
    await page.getByText('The fleet is simulated: its tasks have no output.').waitFor()
    await page.goto(`${ui.url}/tasks/${waits}`)
    await act('Hold')
    await expect.poll(async () => (await task(waits)).held).toBe(true)
    await act('Release')
    await expect.poll(async () => (await task(waits)).held).toBe(false)
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('keep a question about noswap unchanged while another client changes the task', async () => {
    const id = await submit('changed-elsewhere')
    const { page } = await open(`/tasks/${id}`)
    await page.getByRole('button', { name: 'Set noswap 1' }).press('Enter')
    const dialog = await focusedDialog(page)
    await fetch(`${api}/tasks/${id}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ noswap: 1 }),
    })
    await page.getByText('1: stays in physical VRAM').waitFor()
    // Not closed by a click outside of it.
    await page.mouse.click(5, 300)
    await dialog.getByText('Set noswap to 1 for changed-elsewhere?').waitFor()
    await confirmByKey(page, 'Set noswap 1')
    expect((await getJson<TaskBody>(`${api}/tasks/${id}`)).noswap).toBe(1)
    await page.getByRole('button', { name: 'Set noswap 0' }).waitFor()
    await page.context().close()
  })

  test('lead from a placed task to its placement decision', async () => {
    const running = await getJson<TaskPage>(`${api}/tasks?state=running&limit=1`)
    const id = running.items[0]?.id as string
    const { page, faults } = await open(`/tasks/${id}?view=decisions`)
    // Its placement comes first, whatever later swaps it caused.
    const decision = page
      .locator('details[id^=decision-]')
      .filter({ hasText: /placement/i })
      .first()
    await decision.locator('summary').press('Enter')
    await decision.getByText('GPUs on which the task fits, best first').waitFor()
    expect(faults).toEqual([])
    await page.context().close()
  })
})
