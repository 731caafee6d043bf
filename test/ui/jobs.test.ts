/**
 * Jobs of an operator at 1440 × 900, with a limit on the number of inputs: a click, a key, and a field that
 * is filled count one each. The answer must be in the window without scrolling.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import type { ConfigBody } from '../../controller/api/config/schema.ts'
import type { DecisionPage } from '../../controller/api/observe/decision-schema.ts'
import type { NodeBody, NodePage } from '../../controller/api/nodes/schema.ts'
import type { TaskBody, TaskPage } from '../../controller/api/tasks/schema.ts'
import { CHROMIUM, focusedDialog } from '../support/browser.ts'
import { Hands } from '../support/hands.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson, putJson } from '../support/served.ts'

/** The tasks of a store that is started again are lost: the first line would be about them. */
const ui = servedPage(`${temporaryFolder()}/data`, { isNew: true })
let api: string
let nodes: readonly NodeBody[]

async function start(path: string): Promise<Hands> {
  const { page } = await ui.browser.page({ width: 1440, height: 900 })
  await page.goto(`${ui.url}${path}`)
  await page.locator('#freshness[data-status=live]').waitFor()
  return new Hands(page)
}

async function submit(name: string, more: object = {}): Promise<TaskBody> {
  const answer = await fetch(`${api}/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name, vram_mib: 900_000, command: ['x'], ...more }),
  })
  return (await answer.json()) as TaskBody
}

const overrideOf = async (id: string) =>
  (await getJson<NodeBody>(`${api}/nodes/${id}`)).overcommit_vram_percent

describe.skipIf(CHROMIUM === null)('a job', () => {
  beforeAll(async () => {
    api = `${ui.served.url}/api/v1`
    nodes = (await getJson<NodePage>(`${api}/nodes`)).items
  })

  test('Why a task waits: at most 3 inputs from the dashboard', async () => {
    await submit('waits-long')
    const hands = await start('/')
    expect(await hands.page.title()).toBe('Dashboard · Headroom')
    await hands.press('/')
    await hands.fill(hands.page.getByRole('searchbox', { name: 'Search tasks and nodes' }), 'waits-long')
    await hands.press('Enter')
    const answer = hands.page.locator('#sentence')
    expect(await hands.sees(answer)).toBe(true)
    expect(await answer.innerText()).toMatch(/larger|never|needs/i)
    expect(hands.inputs).toBeLessThanOrEqual(3)
    expect(await hands.page.title()).toBe('waits-long · Headroom')
    await hands.page.context().close()
  })

  test('Overcommit 50% from the dashboard: at most 4 inputs, and undone with one more', async () => {
    await putJson(`${api}/config`, { default_vram_overcommit_percent: 0 })
    await submit('waits-too')
    const hands = await start('/')
    const line = hands.page.locator('#status-line')
    expect(await hands.sees(line)).toBe(true)
    expect(await line.innerText()).toMatch(/waiting, and overcommit is off/)
    await hands.click(line.getByRole('link', { name: 'Preview' }))
    const apply = hands.page.getByRole('region', { name: 'Plan' }).getByRole('button', { name: 'Apply' })
    expect(await hands.sees(apply)).toBe(true)
    const percent = async () => (await getJson<ConfigBody>(`${api}/config`)).default_vram_overcommit_percent
    expect(await percent()).toBe(0)
    await hands.click(apply)
    await expect.poll(percent).toBe(50)
    expect(hands.inputs).toBeLessThanOrEqual(4)
    await hands.click(hands.button('Undo'))
    await expect.poll(percent).toBe(0)
    await hands.page.context().close()
  })

  test('Overcommit off on one node: at most 4 inputs, and back with at most 3', async () => {
    const id = nodes[0]?.node_id as string
    await putJson(`${api}/config`, { default_vram_overcommit_percent: 50 })
    const hands = await start(`/nodes/${id}`)
    await hands.click(hands.page.getByLabel('off', { exact: false }).first())
    await hands.click(hands.button('Plan'))
    await hands.click(hands.button('Apply…'))
    await hands.click((await focusedDialog(hands.page)).getByRole('button', { name: 'Apply' }))
    await expect.poll(() => overrideOf(id)).toBe(0)
    expect(hands.inputs).toBeLessThanOrEqual(4)
    await hands.click(hands.button('Undo'))
    await expect.poll(() => overrideOf(id)).toBeNull()
    expect(hands.inputs).toBeLessThanOrEqual(4 + 3)
    await hands.page.context().close()
  })

  test('A group with one node: at most 5 inputs', async () => {
    const hands = await start('/groups')
    await hands.click(hands.button('New group'))
    const editor = hands.page.getByRole('form', { name: 'New group' })
    await hands.fill(editor.getByLabel('Name'), 'evening')
    await hands.click(editor.getByRole('checkbox').first())
    await hands.click(editor.getByRole('button', { name: 'Plan' }))
    await hands.click(editor.getByRole('button', { name: 'Apply' }))
    await hands.page.getByRole('button', { name: 'Edit evening' }).waitFor()
    expect(hands.inputs).toBeLessThanOrEqual(5)
    await hands.page.context().close()
  })

  test('Cancel a task with 2 inputs and drain a node with at most 3, each after a question', async () => {
    const { id } = await submit('to-cancel')
    const hands = await start(`/tasks/${id}`)
    await hands.click(hands.button('Cancel task'))
    expect((await getJson<TaskBody>(`${api}/tasks/${id}`)).state).toBe('pending')
    await hands.click((await focusedDialog(hands.page)).getByRole('button', { name: 'Cancel task' }))
    await expect.poll(async () => (await getJson<TaskBody>(`${api}/tasks/${id}`)).state).toBe('cancelled')
    expect(hands.inputs).toBe(2)
    const node = nodes.at(-1)?.node_id as string
    await hands.page.goto(`${ui.url}/nodes/${node}`)
    hands.inputs = 0
    await hands.click(hands.button('Drain'))
    const question = await focusedDialog(hands.page)
    await hands.click(question.getByRole('button', { name: 'Drain', exact: true }))
    await expect.poll(async () => (await getJson<NodeBody>(`${api}/nodes/${node}`)).drain !== null).toBe(true)
    expect(hands.inputs).toBeLessThanOrEqual(3)
    await hands.page.context().close()
  })

  test('Submit a task: at most 3 inputs besides its fields, after a preview', async () => {
    const hands = await start('/tasks')
    await hands.click(hands.button('Submit task'))
    const drawer = hands.page.getByRole('dialog', { name: 'Submit task' })
    await drawer.getByLabel('Name').fill('from-the-page')
    await drawer.getByLabel('Command').fill('python "my train.py" --epochs 3')
    await drawer.getByLabel('VRAM per GPU (GiB)').fill('900')
    const preview = drawer.locator('#start-preview')
    await preview.getByText('The task would wait.').waitFor()
    expect(await hands.sees(preview)).toBe(true)
    await hands.click(drawer.getByRole('button', { name: 'Submit' }))
    await hands.page.getByRole('heading', { level: 1, name: 'from-the-page' }).waitFor()
    const { items } = await getJson<TaskPage>(`${api}/tasks?state=all&q=from-the-page`)
    expect(items[0]).toMatchObject({
      command: ['python', 'my train.py', '--epochs', '3'],
      vram_mib: 900 * 1024,
    })
    expect(hands.inputs).toBeLessThanOrEqual(3)
    await hands.page.context().close()
  })

  test('The GPU that swaps most, its victim and why: at most 3 inputs', async () => {
    // With overcommit the idle tasks of the past are replaced by waiting ones.
    await putJson(`${api}/config`, { default_vram_overcommit_percent: 100 })
    const hands = await start('/')
    await hands.click(hands.button('Swap-outs, 1 h'))
    const most = hands.page.locator('#most-swaps')
    const why = most.getByRole('link', { name: /^Why/ })
    await why.waitFor()
    expect(await hands.sees(most)).toBe(true)
    const { items } = await getJson<DecisionPage>(`${api}/decisions?kind=swap_out&limit=200`)
    const number = Number(/decision (\d+)/.exec((await why.textContent()) ?? '')?.[1])
    const decision = items.find((each) => each.number === number)
    expect(await most.textContent()).toContain(decision?.sentence)
    await hands.click(why)
    const opened = hands.page.locator(`#decision-${number}`)
    await opened.getByRole('group', { name: 'Swap-out candidates' }).waitFor()
    expect(await hands.sees(opened.locator('summary').first())).toBe(true)
    expect(hands.inputs).toBeLessThanOrEqual(3)
    await hands.page.context().close()
  })

  test('The most used GPU: 2 inputs from the dashboard, by pointer or keyboard', async () => {
    const hands = await start('/')
    await hands.click(hands.button('VRAM used'))
    const map = hands.page.getByRole('group', { name: /^GPU map/ })
    await map.focus()
    await hands.page.keyboard.press('ArrowRight')
    const status = hands.page.locator('#gpu-status')
    await expect.poll(() => status.innerText()).toMatch(/GPU \d+ · utilization/)
    await hands.click(hands.page.getByText('GPUs as a table'))
    const table = hands.page.getByRole('group', { name: 'GPUs', exact: true })
    expect(await table.locator('tbody tr').count()).toBe(nodes.flatMap(({ gpus }) => gpus).length)
    expect(hands.inputs).toBe(2)
    await hands.page.keyboard.press('Tab')
    await map.focus()
    await hands.page.keyboard.press('Enter')
    await hands.page.waitForURL(/\/nodes\//)
    await hands.page.context().close()
  })
})
