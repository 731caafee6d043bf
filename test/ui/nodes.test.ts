/** The list of nodes and the page of a node, with a controller and a simulated fleet. */
import type { Locator } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import type { NodeBody, NodePage } from '../../controller/api/nodes/schema.ts'
import { accessibilityFaults, CHROMIUM, confirmByKey, type WatchedPage } from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { ganttScript } from '../support/gantt-in-page.ts'
import { getJson, putJson } from '../support/served.ts'

const ui = servedPage(`${temporaryFolder()}/data`)
let api: string
let nodes: readonly NodeBody[]

async function open(path: string): Promise<WatchedPage> {
  const watchedPage = await ui.browser.page({ width: 1440 })
  await watchedPage.page.goto(`${ui.url}${path}`)
  return watchedPage
}

function nodeAt(at: number): NodeBody {
  const node = nodes[at]
  if (node === undefined) throw new Error(`there is no node ${at}`)
  return node
}

const overrideOf = async (id: string) =>
  (await getJson<NodeBody>(`${api}/nodes/${id}`)).overcommit_vram_percent

// Some tests do several things in sequence, which takes longer on a loaded machine.
describe.skipIf(CHROMIUM === null)('the node pages', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    api = `${ui.served.url}/api/v1`
    nodes = (await getJson<NodePage>(`${api}/nodes`)).items
  })
  test('show override 20%, off for 0, inherits for none, and the four figures of the API', async () => {
    await putJson(`${api}/config`, { default_vram_overcommit_percent: 50 })
    await putJson(`${api}/nodes/${nodeAt(0).node_id}/config`, { overcommit_vram_percent: 20 })
    await putJson(`${api}/nodes/${nodeAt(1).node_id}/config`, { overcommit_vram_percent: 0 })
    const { page, faults } = await open('/nodes')
    const row = (name: string) =>
      page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
    await expect.poll(() => row(nodeAt(0).name).innerText()).toContain('override 20%')
    expect(await row(nodeAt(1).name).innerText()).toContain('off')
    expect(await row(nodeAt(2).name).innerText()).toContain('inherits 50%')
    const bar = await row(nodeAt(1).name).getByRole('img').getAttribute('aria-label')
    expect(bar).toMatch(/^used .+, allocated .+, schedulable 160\.0 GiB, physical 160\.0 GiB$/)
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('plan, confirm and apply an override, and refuse an invalid number without a request', async () => {
    const node = nodeAt(2)
    const { page, faults } = await open(`/nodes/${node.node_id}`)
    const sent: string[] = []
    page.on('request', (request) => request.method() === 'PUT' && sent.push(request.url()))
    await page.getByLabel('override, %').check()
    const field = page.getByLabel('Overcommit, percent')
    for (const text of ['1001', '-1', '1.5', '', 'abc']) {
      await field.fill(text)
      await page.getByRole('button', { name: 'Plan' }).click()
      await expect
        .poll(() => page.locator('#percent-problem').innerText())
        .toBe('Enter a whole number from 0 to 1,000.')
      expect(await field.getAttribute('aria-invalid')).toBe('true')
    }
    expect(sent).toEqual([])
    await field.fill('75')
    await page.getByRole('button', { name: 'Plan' }).click()
    await page.getByRole('group', { name: 'This node, before and after' }).waitFor()
    expect(sent.length).toBe(1)
    expect(sent[0]).toContain('dry_run=true')
    expect(await overrideOf(node.node_id)).toBe(null)
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Apply…' }).press('Enter')
    await confirmByKey(page, 'Apply')
    await page.getByText('Applied: override 75%').waitFor()
    expect(await overrideOf(node.node_id)).toBe(75)
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('show a change by another client without overwriting it, and keep typed text', async () => {
    const node = nodeAt(3)
    const { page } = await open(`/nodes/${node.node_id}`)
    await page.getByLabel('override, %').check()
    await page.getByLabel('Overcommit, percent').fill('33')
    await putJson(`${api}/nodes/${node.node_id}/config`, { overcommit_vram_percent: 44 })
    await page.getByText('Another user changed these settings. When you started: inherits 50%').waitFor()
    expect(await page.getByLabel('Overcommit, percent').inputValue()).toBe('33')
    expect(await overrideOf(node.node_id)).toBe(44)
    await page.getByRole('button', { name: 'Continue with the new settings' }).click()
    await page.getByRole('button', { name: 'Plan' }).click()
    await page.getByRole('button', { name: 'Apply…' }).click()
    await page.getByText('This lowers the commit limit.').waitFor()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Apply' }).click()
    await expect.poll(() => overrideOf(node.node_id)).toBe(33)
    await page.context().close()
  })

  test('ask before cordon, uncordon and drain', async () => {
    const id = nodeAt(4).node_id
    const node = () => getJson<NodeBody>(`${api}/nodes/${id}`)
    const { page } = await open(`/nodes/${id}`)
    const dialog = page.getByRole('alertdialog')
    for (const [name, isDone] of [
      ['Cordon', async () => (await node()).cordoned],
      ['Uncordon', async () => !(await node()).cordoned],
      ['Drain', async () => (await node()).drain !== null],
    ] as const) {
      await page.getByRole('button', { name, exact: true }).click()
      await dialog.getByRole('button', { name, exact: true }).click()
      await expect.poll(isDone).toBe(true)
      await dialog.waitFor({ state: 'detached' })
    }
    await page.context().close()
  })

  test('lead from residency bars to their decisions by keyboard, and show the same as a table', async () => {
    const { page, faults } = await open(`/nodes/${nodeAt(0).node_id}`)
    const chart = page.getByRole('group', { name: /^Residency in the last hour/ })
    const table = page.locator('figure', { has: chart }).locator('details')
    await table.locator('summary').press('Enter')
    await page
      .getByRole('group', { name: 'Bars of Residency in the last hour' })
      .locator('tbody tr')
      .first()
      .waitFor()
    await chart.press('ArrowRight')
    await expect
      .poll(() => page.locator('figure', { has: chart }).getByRole('status').innerText())
      .toMatch(/^GPU \d+: .+ from .+ for .+/)
    // The decision of an old bar may no longer be retained: then the next bar has one.
    const decision = page.locator('#behind strong')
    await expect
      .poll(async () => {
        await chart.press('Enter')
        const isShown = await isSoonVisible(decision)
        if (!isShown) await chart.press('ArrowRight')
        return isShown
      })
      .toBe(true)
    expect(await accessibilityFaults(page)).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  // `make bench-ui` measures the duration.
  test('draw 32,000 bars as one rectangle each, with one colour change per kind', async () => {
    const { page } = await ui.browser.page()
    const counted = await page.evaluate<object>(
      ganttScript(`
        let [rectangles, colours] = [0, 0]
        const fillRect = ctx.fillRect.bind(ctx)
        ctx.fillRect = (...box) => { rectangles += 1; fillRect(...box) }
        const { get, set } = Object.getOwnPropertyDescriptor(CanvasRenderingContext2D.prototype, 'fillStyle')
        Object.defineProperty(ctx, 'fillStyle', { get, set(value) { colours += 1; set.call(ctx, value) } })
        const before = document.getElementsByTagName('*').length
        drawAll()
        const { data } = ctx.getImageData(600, 8, 1, 1)
        const added = document.getElementsByTagName('*').length - before
        return { rectangles, colours, added, isDrawn: data[3] === 255 }
      `),
    )
    // Patterns need one more each, for bars wide enough to show a pattern; these bars are narrower.
    expect(counted).toEqual({ rectangles: 32_000, colours: 9, added: 0, isDrawn: true })
    await page.context().close()
  })
})

function isSoonVisible(locator: Locator): Promise<boolean> {
  return locator.waitFor({ timeout: 5_000 }).then(
    () => true,
    () => false,
  )
}
