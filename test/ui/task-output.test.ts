/** What a task writes, on its page: a real task on a server with processes, seen at 1440 × 900. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LogBody } from '../../controller/api/tasks/log-schema.ts'
import type { TaskBody, TaskPage } from '../../controller/api/tasks/schema.ts'
import {
  CHROMIUM,
  faultsInEveryLook,
  MAPPED_HOST,
  savedBytes,
  TestBrowser,
  type WatchedPage,
} from '../support/browser.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'

const INVENTORY = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'
const MARKUP = '<img src=x onerror="window.broken=1">'
/** Ends when the test ends the cluster. */
const WRITES = [
  'for i in $(seq 1 9000); do echo "line $i"; done',
  `printf '%s\\n' '${MARKUP}'`,
  `printf '\\033[31mred alarm\\033[0m\\n'`,
  `printf '10%%\\r50%%\\r100%% done\\n'`,
  'mkdir -p out && printf weights >out/model.bin && echo note >readme.txt',
  'echo "on stderr" >&2',
  'echo ready; sleep 600',
].join('\n')

describe.skipIf(CHROMIUM === null || whyNoNatsServer() !== null)('the output of a task', () => {
  let live: LiveCluster
  let browser: TestBrowser
  let task: TaskBody

  beforeAll(async () => {
    browser = await TestBrowser.start()
    live = await LiveCluster.start({ CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST })
    await live.startServer('alpha', INVENTORY)
    task = await submit('writer', ['sh', '-c', WRITES], { labels: { team: 'vision' } })
    await until('the task has written', async () => {
      const end = await live.get<LogBody>(`/tasks/${task.id}/logs?offset=100000000`).catch(() => null)
      return (end?.next_offset ?? 0) > 80_000
    })
  })
  afterAll(async () => {
    await browser?.end()
    await live?.end()
  })

  const submit = (name: string, command: readonly string[], more: object = {}) =>
    live.send<TaskBody>('POST', '/tasks', { name, command, vram_mib: 1_000, ...more })
  const open = async (path: string): Promise<WatchedPage> => {
    const opened = await browser.page()
    await opened.page.goto(`${live.url.replace('127.0.0.1', MAPPED_HOST)}${path}`)
    await opened.page.locator('#freshness[data-status=live]').waitFor()
    return opened
  }
  const pane = (page: Page, name = 'stdout') => page.getByRole('group', { name: `${name} of the task` })
  const streams = async (): Promise<number> =>
    Number(
      /^headroom_http_streams (\d+)$/m.exec(await (await fetch(`${live.url}/metrics`)).text())?.[1] ?? NaN,
    )

  test('The last line is in view after 1 input, and new lines follow over the one connection', async () => {
    const { page, faults } = await open(`/tasks/${task.id}`)
    await page.getByRole('link', { name: 'Logs' }).click()
    const last = pane(page).getByText('ready', { exact: true })
    await last.waitFor()
    const box = await last.boundingBox()
    expect(box !== null && box.y >= 0 && box.y + box.height <= 900).toBe(true)
    expect(await page.evaluate<number>('scrollY')).toBe(0)
    await pane(page, 'stderr').getByText('on stderr').waitFor()
    // Only lines in view are in the document.
    expect(await pane(page).locator('[class*=line_]').count()).toBeLessThan(100)
    expect(await streams()).toBe(1)
    expect(await faultsInEveryLook(page)).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('Markup is text, a progress bar shows its last state, and colours are classes', async () => {
    const { page, faults } = await open(`/tasks/${task.id}?view=logs`)
    await pane(page).getByText(MARKUP).waitFor()
    await pane(page).getByText('100% done', { exact: true }).waitFor()
    expect(await page.evaluate('window.broken')).toBeUndefined()
    expect(await pane(page).locator('img').count()).toBe(0)
    expect(await pane(page).getByText('red alarm').getAttribute('data-colour')).toBe('1')
    expect(await pane(page).getByText('50%', { exact: true }).count()).toBe(0)
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('A search counts its matches and goes to the previous and the next one', async () => {
    const { page, faults } = await open(`/tasks/${task.id}?view=logs`)
    const field = page.getByRole('searchbox', { name: 'Search the loaded output' })
    await pane(page).getByText('ready', { exact: true }).waitFor()
    await field.fill('LINE 77')
    await page.getByText('111 found').waitFor()
    await field.press('Enter')
    await page.getByText('111 of 111').waitFor()
    await pane(page).locator('[data-current]').getByText('line 7799').waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText('1 of 111', { exact: true }).waitFor()
    await expect.poll(() => pane(page).locator('[data-current]').innerText()).toBe('line 77')
    await field.fill('there is no such text')
    await page.getByText('no match').waitFor()
    expect(await faultsInEveryLook(page)).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('A download has all that was written', async () => {
    const { page } = await open(`/tasks/${task.id}?view=logs`)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download stdout' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('writer.stdout.log')
    const text = (await savedBytes(download)).toString()
    expect(text).toMatch(/^line 1\nline 2\n/)
    expect(text).toMatch(/ready\n$/)
    await page.context().close()
  })

  test('Files are listed with their sizes, folder by folder, and can be saved', async () => {
    const { page, faults } = await open(`/tasks/${task.id}?view=files`)
    const files = page.getByRole('group', { name: 'Task files' })
    await files.getByRole('row', { name: /readme\.txt 5 B/ }).waitFor()
    await files.getByRole('button', { name: 'out/' }).click()
    await files.getByRole('row', { name: /model\.bin 7 B/ }).waitFor()
    expect(page.url()).toContain('path=out')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      files.getByRole('button', { name: 'Download model.bin' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('model.bin')
    expect((await savedBytes(download)).toString()).toBe('weights')
    expect(await faultsInEveryLook(page)).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('The ways into a running task are shown as commands for a terminal', async () => {
    const { page, faults } = await open(`/tasks/${task.id}?view=connect`)
    const ways = page.getByRole('region', { name: 'Connect' })
    await ways.getByText(`headroom exec -t ${task.id} -- bash`).waitFor()
    await ways.getByText(`headroom port-forward ${task.id} 8888`).waitFor()
    await ways.getByRole('button', { name: 'Copy command' }).first().click()
    await page.getByText('Copied command.').waitFor()
    const field = page.getByRole('searchbox', { name: 'Search tasks and nodes' })
    await field.focus()
    await page.keyboard.press('Control+V')
    expect(await field.inputValue()).toBe(`headroom exec ${task.id} -- nvidia-smi`)
    expect(await faultsInEveryLook(page)).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('The JSON can be copied without a secure context', async () => {
    const { page, faults } = await open(`/tasks/${task.id}?view=json`)
    expect(await page.evaluate('isSecureContext')).toBe(false)
    await page.getByRole('button', { name: 'Copy JSON' }).click()
    await page.getByText('Copied JSON.').waitFor()
    const field = page.getByRole('searchbox', { name: 'Search tasks and nodes' })
    await field.focus()
    await page.keyboard.press('Control+V')
    expect(await field.inputValue()).toContain(`"id": "${task.id}"`.slice(0, 20))
    expect(await faultsInEveryLook(page)).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('A clone begins with the fields of its task and is another task', async () => {
    const { page, faults } = await open(`/tasks/${task.id}`)
    const button = page.getByRole('button', { name: 'Clone' })
    const drawer = page.getByRole('dialog', { name: 'Clone writer' })
    for (const close of [() => page.mouse.click(5, 300), () => page.keyboard.press('Escape')]) {
      await button.press('Enter')
      await drawer.locator(':focus').waitFor()
      await close()
      await drawer.waitFor({ state: 'detached' })
      await page.locator('button:focus', { hasText: 'Clone' }).waitFor()
    }
    await button.click()
    expect(await drawer.getByLabel('Name').inputValue()).toBe('writer')
    await drawer.getByText(/^Also copied: .*labels/).waitFor()
    await drawer.getByLabel('Name').fill('writer-2')
    await drawer.getByLabel('Command').fill('sh -c "echo hello"')
    await drawer.getByRole('button', { name: 'Submit' }).click()
    await page.getByRole('heading', { level: 1, name: 'writer-2' }).waitFor()
    const { items } = await live.get<TaskPage>('/tasks?state=all&q=writer-2')
    expect(items[0]).toMatchObject({
      command: ['sh', '-c', 'echo hello'],
      labels: { team: 'vision' },
      vram_mib: 1_000,
    })
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('Output that is written later appears while the page is open', async () => {
    const { page } = await open(`/tasks/${task.id}?view=logs`)
    await pane(page).getByText('ready', { exact: true }).waitFor()
    await page.getByText('Following.').waitFor()
    const more = await submit('later', ['sh', '-c', 'echo one; sleep 3; echo two'])
    await page.goto(`${live.url.replace('127.0.0.1', MAPPED_HOST)}/tasks/${more.id}?view=logs`)
    await pane(page).getByText('one', { exact: true }).waitFor()
    await pane(page).getByText('two', { exact: true }).waitFor()
    await page.getByText('The output is complete.').waitFor()
    await page.context().close()
  })
})
