/** Charts over time in a browser: crosshair, tooltip, annotations, legend, zoom and pause. */
import { describe, expect, test } from 'vitest'
import { CHROMIUM, faultsInEveryLook } from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { putJson } from '../support/served.ts'

const ui = servedPage(`${temporaryFolder()}/data`)

describe.skipIf(CHROMIUM === null)('the charts of a page', { timeout: 300_000 }, () => {
  test('share one tooltip with all values at the crosshair, and the titles of annotations', async () => {
    for (const percent of [20, 50])
      await putJson(`${ui.served.url}/api/v1/config`, { default_vram_overcommit_percent: percent })
    const { page, faults } = await ui.browser.page()
    await page.goto(`${ui.url}/?range=-15m`)
    const plot = page.getByRole('group', { name: 'Starvation: use the arrow keys to move between points' })
    await plot.scrollIntoViewIfNeeded()
    const size = await plot.boundingBox()
    await plot.hover({ position: { x: (size?.width ?? 0) / 2, y: 80 } })
    const tooltip = page.locator('[class*=tooltip]:has(table)')
    await tooltip.waitFor()
    const text = await tooltip.innerText()
    expect(text).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/)
    for (const name of ['utilization', 'queue', 'swap', 'compute', 'allocated', 'pending tasks', 'p95'])
      expect(text).toContain(name)
    expect(await tooltip.count()).toBe(1)
    // The other charts have their crosshair at the same instant.
    const status = page.getByRole('figure', { name: 'VRAM' }).getByRole('status')
    await expect.poll(() => status.innerText()).toContain(text.split('\n')[0])
    expect(await status.getAttribute('aria-live')).toBe('off')

    // The change was made just now: the newest point is near its annotation.
    await expect
      .poll(async () => {
        await plot.press('Home')
        await plot.press('End')
        return tooltip.innerText()
      })
      .toMatch(/Configuration \d+: default_vram_overcommit_percent 20 → 50/)
    await expect
      .poll(() => page.getByRole('figure', { name: 'Starvation' }).getByRole('status').innerText())
      .toMatch(/Configuration \d+: default_vram_overcommit_percent 20 → 50/)
    expect(await faultsInEveryLook(page)).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('hide a line from the legend, zoom all together, and keep the range in the address', async () => {
    const { page, faults } = await ui.browser.page()
    await page.goto(ui.url)
    const figure = page.getByRole('figure', { name: 'VRAM' })
    const legend = figure.getByRole('table', { name: 'Legend of VRAM' })
    const line = legend.getByRole('button', { name: 'allocated' })
    await expect.poll(() => figure.getByRole('status').innerText()).toContain('allocated')
    expect(await legend.getByRole('row', { name: 'used' }).getByRole('cell').allInnerTexts()).toHaveLength(3)
    await line.click()
    expect(await line.getAttribute('aria-pressed')).toBe('false')
    await expect.poll(() => figure.getByRole('status').innerText()).not.toContain('allocated')
    await line.click()
    await expect.poll(() => figure.getByRole('status').innerText()).toContain('allocated')

    const asked: string[] = []
    page.on('request', (request) => request.url().includes('/series?') && asked.push(request.url()))
    const plot = figure.getByRole('group', { name: 'VRAM: use the arrow keys to move between points' })
    await plot.scrollIntoViewIfNeeded()
    const { x = 0, y = 0, width = 0 } = (await plot.boundingBox()) ?? {}
    await page.mouse.move(x + width / 2, y + 40)
    await page.mouse.down()
    await page.mouse.move(x + width * 0.75, y + 50, { steps: 4 })
    await page.mouse.up()
    await expect.poll(() => page.url()).toMatch(/\?from=.+&to=.+/)
    const { searchParams: zoomed } = new URL(page.url())
    const spanMs = Date.parse(zoomed.get('to') ?? '') - Date.parse(zoomed.get('from') ?? '')
    expect(spanMs).toBeGreaterThan(600_000)
    expect(spanMs).toBeLessThan(1_500_000)
    await expect
      .poll(() => asked.some((url) => new URL(url).searchParams.get('to') === zoomed.get('to')))
      .toBe(true)
    await page.reload()
    await page.getByRole('button', { name: 'Go live' }).click()
    await expect.poll(() => page.url()).not.toContain('from=')
    await page.getByRole('button', { name: 'Pause charts' }).click()
    await expect.poll(() => page.url()).toMatch(/\?from=.+&to=.+/)
    await page.getByRole('button', { name: 'Go live' }).waitFor()
    expect(faults).toEqual([])
    await page.context().close()
  })
})
