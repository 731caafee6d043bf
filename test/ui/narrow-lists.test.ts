/** The lists on a screen of a phone: filters, and tables that are wider than the screen. */
import { describe, expect, test } from 'vitest'
import type { Locator, Page } from 'playwright-core'
import { CHROMIUM, faultsInEveryLook, sidewaysPixels } from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'

const WIDTH = 390
const HEIGHT = 844
/** Smallest side of a button for a thumb. */
const THUMB_PX = 32

const ui = servedPage(`${temporaryFolder()}/data`)

/** Path of a list, name of its table, a filter field and a value for it, number of filters in the path. */
const LISTS = [
  ['/tasks?tab=all&q=e&priority=2', 'Tasks', 'Name contains', 'no-such-task', 2],
  ['/nodes?status=up', 'Nodes', 'Name contains', 'no-such-node', 1],
  ['/events?node=a100-0', 'Events, newest first', 'Task', 'no-such-task', 1],
] as const

async function open(path: string): Promise<Page> {
  const { page } = await ui.browser.page({ width: WIDTH, height: HEIGHT })
  await page.goto(`${ui.url}${path}`)
  await page.locator('#freshness[data-status=live]').waitFor()
  return page
}

const tableOf = (page: Page, name: string): Locator => page.getByRole('group', { name, exact: true })

async function boxOf(element: Locator): Promise<{ x: number; y: number; width: number; height: number }> {
  const box = await element.boundingBox()
  if (box === null) throw new Error('the element is not visible')
  return box
}

describe.skipIf(CHROMIUM === null)('a list on a narrow screen', { timeout: 300_000 }, () => {
  test.each(LISTS)('%s: opens its filters with a button', async (path, name, field, value, active) => {
    const page = await open(path)
    const filters = page.getByRole('search').filter({ has: page.getByRole('button', { name: /^Filters/ }) })
    const toggle = filters.getByRole('button', { name: /^Filters/ })
    const input = filters.getByLabel(field, { exact: true })
    await tableOf(page, name).waitFor()
    expect(await toggle.innerText()).toBe(`Filters (${active})`)
    expect(await toggle.getAttribute('aria-expanded')).toBe('false')
    expect(await input.isVisible()).toBe(false)
    expect((await boxOf(toggle)).height).toBeGreaterThanOrEqual(THUMB_PX)
    expect((await boxOf(tableOf(page, name))).y).toBeLessThan(HEIGHT / 2)
    await toggle.click()
    expect(await toggle.getAttribute('aria-expanded')).toBe('true')
    const { x, width } = await boxOf(input)
    expect(x + width).toBeLessThanOrEqual(WIDTH)
    expect(await faultsInEveryLook(page)).toEqual([])
    await page.setViewportSize({ width: WIDTH, height: HEIGHT })
    await input.fill(value)
    await input.press('Enter')
    await page.waitForURL(new RegExp(value))
    await page.getByText(/No (?:tasks|nodes) match|no similar name/).waitFor()
    expect(await sidewaysPixels(page)).toBeLessThanOrEqual(0)
    await page.context().close()
  })

  test.each(LISTS)('%s: keeps the first column in view', async (path, name) => {
    const page = await open(path)
    const table = tableOf(page, name)
    const first = table.locator('tbody tr').first().locator('td:not(:has(> input))').first()
    await first.waitFor()
    const scrolled = await table.evaluate((element) => {
      element.scrollLeft = element.scrollWidth
      return element.scrollLeft
    })
    expect(scrolled).toBeGreaterThan(0)
    const { x, width } = await boxOf(first)
    const { x: left } = await boxOf(table)
    expect(x).toBeGreaterThanOrEqual(left)
    // Other columns remain visible.
    expect(width).toBeLessThanOrEqual(WIDTH / 2)
    await page.context().close()
  })
})
