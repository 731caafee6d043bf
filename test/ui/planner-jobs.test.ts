/**
 * Jobs with the planner and the simulator at 1440 × 900, with a limit on the number of inputs. What is asked
 * for must be in the window without scrolling.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import type { ConfigBody } from '../../controller/api/config/schema.ts'
import { CHROMIUM, faultsInEveryLook } from '../support/browser.ts'
import { Hands } from '../support/hands.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson, untilPresent } from '../support/served.ts'

/** Its past is that of a demonstration that was started two hours ago. */
const ui = servedPage(`${temporaryFolder()}/data`, { isNew: true })
let api: string

async function start(path: string): Promise<Hands> {
  const { page } = await ui.browser.page({ width: 1440, height: 900 })
  await page.goto(`${ui.url}${path}`)
  await page.locator('#freshness[data-status=live]').waitFor()
  return new Hands(page)
}

describe.skipIf(CHROMIUM === null)('a job of a planner', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    api = `${ui.served.url}/api/v1`
    await untilPresent(ui.served.url)
  })

  test('The first sweep that can be proposed, on the shipped demo: at most 4 inputs', async () => {
    const hands = await start('/')
    const { page } = hands
    await hands.click(page.getByRole('link', { name: 'Planner', exact: true }))
    const cards = page.getByRole('region', { name: 'Start a sweep' })
    // The past of this cluster is offered first.
    expect(await cards.getByRole('heading').first().innerText()).toBe('This cluster, last 24 h')
    expect(await faultsInEveryLook(page)).toEqual([])
    await page.setViewportSize({ width: 1440, height: 900 })
    await hands.click(cards.getByRole('button', { name: 'Run This cluster, now' }))
    const advice = page.getByRole('region', { name: 'Recommendation' })
    const propose = advice.getByRole('link', { name: /^Propose/ }).last()
    expect(await hands.sees(propose)).toBe(true)
    expect(await faultsInEveryLook(page)).toEqual([])
    await page.setViewportSize({ width: 1440, height: 900 })
    const percent = Number(/\d+/.exec(await propose.innerText())?.[0])
    await hands.click(propose)
    const apply = page.getByRole('region', { name: 'Plan' }).getByRole('button', { name: 'Apply' })
    expect(await hands.sees(apply)).toBe(true)
    await page.getByText(`Proposed: ${percent}%.`).waitFor()
    expect((await getJson<ConfigBody>(`${api}/config`)).default_vram_overcommit_percent).toBe(0)
    expect(hands.inputs).toBeLessThanOrEqual(4)
    await page.context().close()
  })

  test('The last 24 hours of this cluster are run with one input', async () => {
    const hands = await start('/planner')
    await hands.click(hands.page.getByRole('button', { name: 'Run This cluster, last 24 h' }))
    await hands.page.getByRole('heading', { level: 1, name: 'trace-here-24h' }).waitFor()
    expect(
      await hands.sees(hands.page.getByRole('region', { name: 'Recommendation' }).locator('p').first()),
    ).toBe(true)
    expect(hands.inputs).toBe(1)
    await hands.page.context().close()
  })

  test('A plan from a CSV file whose columns have other names: at most 8 inputs', async () => {
    const hands = await start('/planner')
    const { page } = hands
    await hands.click(page.getByLabel('Trace', { exact: true }))
    await hands.click(page.getByText('Upload a trace, or use the history of this cluster'))
    const rows = Array.from({ length: 30 }, (_, at) => `job-${at},"a, b",${at * 60},900,20480`)
    hands.inputs += 1
    await page.getByLabel('File', { exact: true }).setInputFiles({
      name: 'Lab Jobs.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from(`who,note,Submit Time,seconds_on_gpu,GPU Mem\r\n${rows.join('\n')}\n`),
    })
    const columns = page.getByRole('group', { name: 'File columns' })
    // What has a usual name is known.
    expect(await columns.getByLabel('Submitted at').inputValue()).toBe('2')
    expect(await columns.getByLabel('VRAM per GPU').inputValue()).toBe('4')
    await columns.getByText('Choose the column that contains the duration or the end time.').waitFor()
    hands.inputs += 1
    await columns.getByLabel('Duration').selectOption('seconds_on_gpu')
    await hands.click(hands.button('Upload file'))
    await page.getByText('30 tasks from 30 rows, uploaded as csv.').waitFor()
    await hands.click(page.locator('button.primary:not([aria-disabled])', { hasText: 'Run sweep' }))
    await page.waitForURL(/\/planner\/[0-9a-f-]{36}$/)
    expect(await hands.sees(page.getByRole('region', { name: 'Recommendation' }).locator('p').first())).toBe(
      true,
    )
    expect(hands.inputs).toBeLessThanOrEqual(8)
    await page.context().close()
  })

  test('An exercise from its start to its score: at most 12 inputs', async () => {
    const hands = await start('/')
    const { page } = hands
    const to = (name: string) => hands.click(page.getByRole('link', { name, exact: true }))
    await to('Simulator')
    const exercise = page.getByRole('article', { name: /Pick an overcommit percentage/ })
    await hands.click(exercise.getByRole('button', { name: 'Start' }))
    await page.getByRole('heading', { level: 1, name: /Pick an overcommit percentage/ }).waitFor()
    await to('Settings')
    await hands.fill(page.getByRole('textbox', { name: /^VRAM overcommit/ }), '100')
    await hands.click(hands.button('Plan change'))
    await hands.click(page.getByRole('region', { name: 'Plan' }).getByRole('button', { name: 'Apply' }))
    await page.getByRole('button', { name: 'Undo' }).waitFor()
    await to('Exercise')
    await hands.click(hands.button('Finish and show score'))
    await hands.click(page.getByRole('alertdialog').getByRole('button', { name: 'Finish' }))
    const score = page.getByTestId('score')
    expect(await hands.sees(score)).toBe(true)
    expect(await score.innerText()).toBe('100 of 100 points')
    expect(hands.inputs).toBeLessThanOrEqual(12)
    await page.context().close()
  })

  test('A session with pause, step, a jump and a fault: at most 10 inputs', async () => {
    const hands = await start('/')
    const { page } = hands
    await hands.click(page.getByRole('link', { name: 'Simulator', exact: true }))
    hands.inputs += 1
    await page.getByLabel('Scenario', { exact: true }).selectOption('swap-fairness-basic')
    await hands.click(hands.button('Open session'))
    await page.getByTestId('virtual-time').waitFor()
    await hands.click(hands.button('×60'))
    await hands.click(hands.button('Pause'))
    await page.getByText('paused', { exact: true }).waitFor()
    await hands.click(hands.button('Step'))
    await hands.button('Step').and(page.locator(':not([aria-disabled=true])')).waitFor()
    await hands.fill(page.getByLabel('Time since the start'), '0:30:00')
    await hands.press('Enter')
    await expect.poll(() => page.getByTestId('virtual-time').innerText()).toBe('0:30:00')
    expect(await hands.sees(page.getByTestId('virtual-time'))).toBe(true)
    await hands.click(page.getByRole('link', { name: 'Faults', exact: true }))
    await hands.click(page.getByRole('button', { name: /^Inject .*fault$/ }))
    await page.getByRole('region', { name: 'Injected faults' }).locator('tbody tr').waitFor()
    expect(hands.inputs).toBeLessThanOrEqual(10)
    await page.context().close()
  })
})
