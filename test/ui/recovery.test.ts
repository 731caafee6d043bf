/**
 * The page with a store that went back to an earlier state: with real controllers whose store was restored,
 * or set back.
 */
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { AttemptListBody, RecoveryBody } from '../../controller/api/tasks/attempt-schema.ts'
import type { TaskBody } from '../../controller/api/tasks/schema.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import {
  CHROMIUM,
  confirmByKey,
  faultsInEveryLook,
  focusedDialog,
  MAPPED_HOST,
  TestBrowser,
  type WatchedPage,
} from '../support/browser.ts'
import { ServedSetBack, type SetBackOptions } from '../support/served-set-back.ts'
import { getJson } from '../support/served.ts'

const UI = join(import.meta.dirname, '../../dist/ui')

let browser: TestBrowser
let served: ServedSetBack

const get = <T>(path: string): Promise<T> => getJson<T>(`${served.url}/api/v1${path}`)
const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

/** Of the row, once it is there. */
async function cellsOf(page: Page, name: string): Promise<string[]> {
  await row(page, name).waitFor()
  return row(page, name).getByRole('cell').allInnerTexts()
}

async function serve(options: SetBackOptions): Promise<void> {
  served = await ServedSetBack.restored({ uiDir: UI, ...options })
}

async function open(path: string): Promise<WatchedPage> {
  const opened = await browser.page({ width: 1280 })
  await opened.page.goto(`${served.url.replace('127.0.0.1', MAPPED_HOST)}${path}`)
  return opened
}

async function signedIn(secret: string, path: string): Promise<WatchedPage> {
  const opened = await open(path)
  await opened.page.getByLabel(/Token for this controller/).fill(secret)
  await opened.page.getByRole('button', { name: 'Sign in' }).press('Enter')
  await opened.page.getByRole('heading', { level: 1, name: 'Recovery' }).waitFor()
  return opened
}

describe.skipIf(CHROMIUM === null)('the page of a store in an earlier state', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    browser = await TestBrowser.start()
  })
  afterEach(() => served.end())
  afterAll(() => browser.end())

  test('adopts quarantined attempts under a confirmed owner, or stops them, by keyboard', async () => {
    await serve({ later: ['kept', 'ended'].map((id) => ({ id, vramMib: 1_000, owner: 'ada' })) })
    const { page, faults } = await open('/')
    const alarm = page.getByRole('alert').getByRole('paragraph').filter({ hasText: 'QUARANTINE' })
    await alarm.getByRole('link', { name: 'Open recovery' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Recovery' }).waitFor()
    await page
      .getByText(
        'No recovery is in progress. Tasks are placed as usual. 2 quarantined attempts are waiting to be ' +
          'adopted or stopped.',
      )
      .waitFor()
    const { items } = await get<AttemptListBody>('/attempts')
    for (const { task_id: id, node_name: node } of items) {
      const cells = await cellsOf(page, `${id}/1`)
      expect(cells.slice(2, 6)).toEqual([node, 'ada unconfirmed', 'simulated', '1,000 MiB on GPU 0'])
    }
    expect(await faultsInEveryLook(page)).toEqual([])

    await row(page, 'kept/1').getByRole('button', { name: 'Adopt…' }).press('Enter')
    const dialog = await focusedDialog(page)
    await dialog.getByText('reported ada as the owner. This is not verified.').waitFor()
    const adopt = dialog.getByRole('button', { name: 'Adopt' })
    // The owner that the node states is not used automatically.
    expect(await dialog.getByLabel('Owner', { exact: true }).inputValue()).toBe('')
    expect(await adopt.getAttribute('title')).toBe('Enter the owner, or select “No owner”.')
    expect(await faultsInEveryLook(page)).toEqual([])
    await dialog.getByLabel('Owner', { exact: true }).fill('bob')
    await confirmByKey(page, 'Adopt')
    const told = page.getByText('Adopted kept, owner: bob.')
    await told.waitFor()
    // Its row has disappeared with the focused button.
    await expect.poll(() => told.evaluate((line) => line.ownerDocument.activeElement === line)).toBe(true)
    expect(await get<TaskBody>('/tasks/kept')).toMatchObject({
      state: 'running',
      attempt: 1,
      owner: 'bob',
      name: 'kept',
    })

    await row(page, 'ended/1').getByRole('button', { name: 'Stop' }).press('Enter')
    await confirmByKey(page, 'Stop')
    await expect.poll(() => served.world.runsOn('ended')).toEqual([])
    await expect.poll(async () => (await get<RecoveryBody>('/recovery')).quarantined_attempts).toBe(0)
    await page.getByText('No recovery is in progress. Tasks are placed as usual.', { exact: true }).waitFor()
    expect(served.world.runs.takeDoubles()).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('lists a task with an unknown end, and adopts an attempt without an owner', async () => {
    await serve({ later: [{ id: 'later', vramMib: 1_000 }], isBeforeEnded: true })
    const { page, faults } = await open('/recovery')
    const unknown = page.getByRole('region', { name: 'Tasks with an unknown result' })
    await unknown.getByRole('link', { name: 'before' }).waitFor()
    expect(await get<TaskBody>('/tasks/before')).toMatchObject({ state: 'lost', end_code: 'result_unknown' })
    await row(page, 'later/1').getByText('none reported').waitFor()
    await row(page, 'later/1').getByRole('button', { name: 'Adopt…' }).press('Enter')
    const dialog = await focusedDialog(page)
    await dialog.getByLabel('No owner').press('Space')
    await dialog.getByLabel('Task name').fill('trained')
    await confirmByKey(page, 'Adopt')
    await page.getByText('Adopted trained, owner: none.').waitFor()
    expect(await get<TaskBody>('/tasks/later')).toMatchObject({
      state: 'running',
      owner: null,
      name: 'trained',
    })
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('lets only an administrator finish a recovery; a viewer sees the number of attempts', async () => {
    await serve({ silent: ['n3'], later: [{ id: 'later', vramMib: 1_000 }] })
    const secrets = {
      admin: await served.token('admin'),
      operator: await served.token('operator'),
      viewer: await served.token('viewer'),
    }
    for (const role of ['viewer', 'operator'] as const) {
      const { page } = await signedIn(secrets[role], '/recovery')
      await page
        .getByRole('alert')
        .getByText(/^RECOVERY/)
        .waitFor()
      for (const at of ['alert', 'main'] as const) {
        await page.getByRole(at).getByText('until 1 more node has reported.').last().waitFor()
      }
      await page
        .getByRole('list', { name: 'Nodes that have not reported' })
        .getByText('n3', { exact: true })
        .waitFor()
      const finish = page.getByRole('button', { name: 'Finish recovery' })
      expect(await finish.getAttribute('title')).toBe(
        `Permission denied: requires role admin. Your role is ${role}.`,
      )
      await finish.press('Enter')
      if (role === 'viewer')
        await page.getByText('Permission denied: requires role operator. Your role is viewer.').waitFor()
      else await page.getByRole('button', { name: 'Adopt…' }).waitFor()
      expect(await page.getByRole('alertdialog').count()).toBe(0)
      await page.context().close()
    }
    const { page } = await signedIn(secrets.admin, '/recovery')
    await page.getByRole('button', { name: 'Finish recovery' }).press('Enter')
    const dialog = await focusedDialog(page)
    await dialog.getByText('1 known node has not reported. Its tasks may then run a second time').waitFor()
    expect(served.world.controller.views.recovery().pause).toBe('RECOVERY')
    expect(await faultsInEveryLook(page)).toEqual([])
    await confirmByKey(page, 'Finish recovery')
    await expect.poll(() => served.world.controller.views.recovery().pause).toBeNull()
    await page.getByText(/^No recovery is in progress. Tasks are placed/).waitFor()
    expect(await page.getByRole('button', { name: 'Finish recovery' }).getAttribute('title')).toBe(
      'No recovery is in progress.',
    )
    await page.context().close()
  })

  test('says why a node was auto-cordoned, and that its attempts are unknown to the store', async () => {
    await serve({ later: [{ id: 'later', vramMib: 1_000 }] })
    const [name = ''] = served.world.runsOn('later')
    const since = served.world.clock.now()
    const closed = {
      since,
      code: 'disk_full',
      reason: 'no space left in /var/lib/headroom',
      nextTrialAt: since + 3_600_000,
    }
    Object.assign(served.world.node(name) as object, {
      autoCordon: { ...closed, failedTrials: 2, isTrialOpen: false },
    })
    const { page, faults } = await open(`/nodes/${nodeIdFromName(name)}`)
    const cordon = page.getByRole('region', { name: 'Automatic cordon' })
    await cordon.getByText('Last reason (disk_full): no space left in /var/lib/headroom').waitFor()
    await cordon
      .getByText(
        /Next trial start: after 20\d\d-.* Failed trial starts: 2\. Uncordon the node to accept tasks/,
      )
      .waitFor()
    await page.getByText('up, auto-cordoned, 1 quarantined attempt', { exact: true }).waitFor()
    const alarm = page.getByRole('alert').getByRole('paragraph').filter({ hasText: 'AUTO_CORDONED' })
    expect(await alarm.getByRole('link', { name: 'Show these nodes' }).getAttribute('href')).toBe(
      '/nodes?status=auto_cordoned',
    )
    await page
      .getByRole('region', { name: 'Quarantine' })
      .getByRole('link', { name: 'Open recovery' })
      .press('Enter')
    await page.getByText('1 quarantined attempt is waiting to be adopted or stopped.').waitFor()
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('lists nodes that are ahead of the store with their marks and that of the store', async () => {
    await serve({})
    await served.loseLatestEvents()
    const { page, faults } = await open('/nodes')
    await page
      .getByRole('alert')
      .getByText(/^STORE_BEHIND/)
      .waitFor()
    await page.getByText('suspect, ahead of the store').first().waitFor()
    await page.getByRole('link', { name: 'Open recovery' }).first().press('Enter')
    await page.getByText(/^The store is behind: \d of 3 nodes have events that are missing from it/).waitFor()
    const { nodes_ahead: ahead, store } = await get<RecoveryBody>('/recovery')
    const section = page.getByRole('region', { name: 'Nodes ahead of the store' })
    await section.getByText(`Store: epoch ${store.epoch}`.replaceAll(/\B(?=(\d{3})+(?!\d))/g, ',')).waitFor()
    for (const { name, event_seq: seq } of ahead) {
      const cells = await cellsOf(page, name ?? '')
      expect([cells[0], cells[2]]).toEqual([name, String(seq)])
    }
    expect(await faultsInEveryLook(page)).toEqual([])
    await page.goto(`${new URL(page.url()).origin}/nodes/${ahead[0]?.node_id ?? nodeIdFromName('n1')}`)
    const notice = page.getByRole('region', { name: 'Ahead of the store' })
    await notice.getByText('It receives no command').waitFor()
    expect(faults).toEqual([])
    await page.context().close()
  })
})
