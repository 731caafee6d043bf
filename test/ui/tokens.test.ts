/**
 * With a controller with tokens: forbidden actions are explained, actions carry a name, and a revoked token
 * leads to the sign-in.
 */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NodePage } from '../../controller/api/nodes/schema.ts'
import type { TaskBody } from '../../controller/api/tasks/schema.ts'
import {
  accessibilityFaults,
  CHROMIUM,
  confirmByKey,
  faultsInEveryLook,
  MAPPED_HOST,
  TestBrowser,
} from '../support/browser.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { serve, WITHOUT_HISTORY, type Served } from '../support/served.ts'

const TOKEN = /headroom_[a-z2-7]{12}_[\w-]{43}/
const data = `${temporaryFolder()}/closed`
const tokens = new Map<string, string>()
let served: Served
let browser: TestBrowser

async function ask<T>(method: string, path: string, body?: object): Promise<T> {
  const headers = { authorization: `Bearer ${tokens.get('admin')}`, 'content-type': 'application/json' }
  const answer = await fetch(`${served.url}/api/v1${path}`, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  })
  expect(answer.ok, `${method} ${path}: ${answer.status}`).toBe(true)
  return (answer.status === 204 ? null : await answer.json()) as T
}

const submitted = (name: string) =>
  ask<TaskBody>('POST', '/tasks', { name, vram_mib: 900_000, command: ['x'] })

/** By keyboard alone. */
async function signedIn(role: string, path: string): Promise<Page> {
  const { page } = await browser.page()
  await page.goto(`${served.url.replace('127.0.0.1', MAPPED_HOST)}${path}`)
  const field = page.getByLabel(/Token for this controller/)
  await field.waitFor()
  expect(await accessibilityFaults(page)).toEqual([])
  // Before the sign-in it is unknown whether the fleet is simulated.
  expect(await page.locator('#mode').count()).toBe(0)
  await field.focus()
  await page.keyboard.insertText(tokens.get(role) as string)
  await page.keyboard.press('Enter')
  await page.getByText(`${role}-name · ${role}`).waitFor()
  return page
}

describe.skipIf(CHROMIUM === null)('the page of a controller with tokens', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    for (const role of ['admin', 'operator', 'submitter', 'viewer']) {
      const { stdout } = await headroom([
        'token',
        'create',
        `${role}-name`,
        '--role',
        role,
        '--data-dir',
        data,
      ])
      tokens.set(role, TOKEN.exec(stdout)?.[0] ?? '')
    }
    served = await serve(data, { CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST, ...WITHOUT_HISTORY })
    browser = await TestBrowser.start()
  }, 120_000)
  afterAll(async () => {
    await browser?.end()
    served?.process.kill('SIGTERM')
    await served?.ended
  })

  test('shows a viewer every action disabled with the reason, and sends nothing', async () => {
    const task = await submitted('seen')
    const node = (await ask<NodePage>('GET', '/nodes')).items[0]?.node_id
    const page = await signedIn('viewer', `/tasks/${task.id}`)
    const sent: string[] = []
    page.on('request', (request) => request.method() !== 'GET' && sent.push(request.url()))
    const expectRefused = async (names: readonly string[]): Promise<void> => {
      for (const name of names) {
        const button = page.getByRole('button', { name, exact: true })
        await button.waitFor()
        expect([name, await button.getAttribute('aria-disabled')]).toEqual([name, 'true'])
        expect(await button.getAttribute('title'), name).toMatch(/requires role (operator|submitter)/)
        await button.press('Enter')
      }
    }
    await expectRefused([
      'Set noswap 1',
      'Priority…',
      'Hold',
      'Release',
      'Swap out',
      'Swap in',
      'Cancel task',
    ])
    await page.goto(`${new URL(page.url()).origin}/nodes/${node}`)
    await expectRefused(['Cordon', 'Drain'])
    expect(await page.getByRole('alertdialog').count()).toBe(0)
    expect(sent).toEqual([])
    await page.context().close()
  })

  test('shows a submitter what the own tasks use and wait for, and leads to these tasks', async () => {
    await submitted('of-the-admin')
    const answer = await fetch(`${served.url}/api/v1/tasks`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${tokens.get('submitter')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ name: 'of-the-submitter', vram_mib: 900_000, command: ['x'] }),
    })
    expect(answer.status).toBe(201)
    const page = await signedIn('submitter', '/owners')
    const own = page.getByRole('region', { name: 'Your tasks' })
    await expect
      .poll(() => own.getByRole('region', { name: 'Pending' }).innerText())
      .toMatch(/^Pending\s+1\s/)
    expect(await own.getByRole('region', { name: 'Running' }).innerText()).toMatch(/^Running\s+0\s/)
    const rows = page.getByRole('group', { name: 'Owners' }).getByRole('row')
    expect(await rows.filter({ hasText: 'admin-name' }).innerText()).toMatch(/admin-name\s+0\s/)
    await page.getByText('What each role sees').press('Enter')
    await page.getByRole('rowheader', { name: 'submitter (yours)' }).waitFor()
    expect(await faultsInEveryLook(page)).toEqual([])

    await own.getByRole('link', { name: 'Pending tasks' }).press('Enter')
    await page.getByRole('link', { name: 'of-the-submitter' }).waitFor()
    expect(page.url()).toMatch(/\/tasks\?tab=pending&owner=submitter-name$/)
    expect(await page.getByRole('link', { name: 'of-the-admin' }).count()).toBe(0)
    await page.context().close()
  })

  test("records actions under the operator's name, and forgets the token at sign-out", async () => {
    const task = await submitted('cancelled-by-name')
    const page = await signedIn('operator', `/tasks/${task.id}`)
    await page.getByRole('button', { name: 'Cancel task' }).press('Enter')
    await confirmByKey(page, 'Cancel task')
    await expect.poll(async () => (await ask<TaskBody>('GET', `/tasks/${task.id}`)).state).toBe('cancelled')
    await page.goto(`${new URL(page.url()).origin}/events?task=${task.id}&kind=task_finished`)
    const row = page.locator('tbody tr').first()
    await row.waitFor()
    expect(await row.innerText()).toMatch(/cancelled-by-name[\s\S]*operator-name/)
    await page.getByRole('button', { name: 'Sign out' }).press('Enter')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await page.evaluate('JSON.stringify(localStorage)')).not.toMatch(TOKEN)
    await page.goto(`${new URL(page.url()).origin}/tasks`)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.context().close()
  })

  test('forgets a token that is revoked while the page is open, and shows the sign-in', async () => {
    const made = await ask<{ readonly id: string; readonly secret: string }>('POST', '/tokens', {
      name: 'short-name',
      role: 'viewer',
    })
    const { page } = await browser.page()
    await page.goto(`${served.url.replace('127.0.0.1', MAPPED_HOST)}/`)
    await page.getByLabel(/Token for this controller/).fill(made.secret)
    await page.getByRole('button', { name: 'Sign in' }).press('Enter')
    await page.locator('#freshness[data-status=live]').waitFor()
    await ask('DELETE', `/tokens/${made.id}`)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await page.evaluate('JSON.stringify(localStorage)')).not.toMatch(TOKEN)
    expect(await page.locator('#freshness').innerText()).toBe('Signed out')
    await page.context().close()
  })
})
