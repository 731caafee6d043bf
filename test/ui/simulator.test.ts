/**
 * The simulator in a browser: the production pages over a session, its time, and exercises with hidden
 * faults. The trainee is a submitter, who may change only own tasks in the live cluster; the instructor is an
 * admin.
 */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  CHROMIUM,
  faultsInEveryLook,
  MAPPED_HOST,
  TestBrowser,
  type PageOptions,
} from '../support/browser.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { serve, WITHOUT_HISTORY, type Served } from '../support/served.ts'

const folder = temporaryFolder()
const tokens: Record<string, string> = {}
let served: Served
let browser: TestBrowser
let url: string

async function as(name: 'trainee' | 'instructor', path: string, options: PageOptions = {}) {
  const { page, faults } = await browser.page(options)
  await page.addInitScript(`localStorage.setItem('headroom-token', ${JSON.stringify(tokens[name])})`)
  const writes: string[] = []
  const answers: Promise<string>[] = []
  page.on('request', (request) => {
    if (request.method() !== 'GET') writes.push(new URL(request.url()).pathname)
  })
  page.on('response', (response) => {
    if (response.headers()['content-type']?.includes('json') === true)
      answers.push(response.text().catch(() => ''))
  })
  await page.goto(`${url}${path}`)
  return { page, faults, writes, answers }
}

const ask = async (
  method: string,
  path: string,
  body?: unknown,
): Promise<{ readonly status: number; readonly body: never }> => {
  const answer = await fetch(`${served.url}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${tokens['instructor']}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, body: (text === '' ? null : JSON.parse(text)) as never }
}

const opened = async (): Promise<string> => {
  const { body } = await ask('POST', '/simulations', { scenario: 'swap-fairness-basic', mode: 'session' })
  return (body as { readonly id: string }).id
}

const idOf = (page: Page): string => /\/simulator\/([^/]+)/.exec(page.url())?.[1] ?? ''
const eventsOf = async (page: Page): Promise<number> =>
  Number((await page.getByTestId('events').innerText()).replaceAll(/\D/g, ''))
const hashOf = async (page: Page): Promise<string> =>
  (await page.getByTestId('state-hash').getAttribute('data-hash')) ?? ''

async function goTo(page: Page, time: string): Promise<void> {
  await page.getByLabel('Time since the start').fill(time)
  await page.getByRole('button', { name: 'Jump' }).click()
  await expect.poll(() => page.getByTestId('virtual-time').innerText()).toBe(time)
}

/** Both runs at one instant, moved by the buttons to the actions, and played. */
async function expectReplay(page: Page): Promise<void> {
  const replay = page.getByRole('region', { name: 'Replay' })
  const instant = replay.getByRole('slider', { name: 'Time' })
  // All GPUs: the results concern any of them.
  expect(await replay.getByLabel('GPUs shown').locator('option:checked').innerText()).toMatch(/^all \d+$/)
  const begin = Number(await instant.inputValue())
  const reference = replay.getByRole('region', { name: 'Reference solution' })
  expect(await reference.locator('[aria-current=step]').count()).toBe(0)
  await replay.getByRole('button', { name: 'Next action' }).press('Enter')
  await reference.locator('[aria-current=step]').waitFor()
  const atAction = Number(await instant.inputValue())
  expect(atAction).toBeGreaterThanOrEqual(begin)
  expect(await replay.getByRole('group', { name: 'At this time' }).locator('tbody tr').count()).toBe(5)
  await replay.getByRole('button', { name: 'Play' }).press('Enter')
  await expect.poll(async () => Number(await instant.inputValue())).toBeGreaterThan(atAction)
  await replay.getByRole('button', { name: 'Pause' }).press('Enter')
  await instant.press('End')
  expect(await reference.getByText('(not yet)').count()).toBe(0)
}

describe.skipIf(CHROMIUM === null)('the simulator page', () => {
  beforeAll(async () => {
    for (const [name, role] of [
      ['instructor', 'admin'],
      ['trainee', 'submitter'],
    ] as const) {
      const { stdout } = await headroom([
        'token',
        'create',
        name,
        '--role',
        role,
        '--data-dir',
        `${folder}/data`,
      ])
      tokens[name] = /headroom_[a-z2-7]{12}_[\w-]{43}/.exec(stdout)?.[0] ?? ''
      expect(tokens[name]).not.toBe('')
    }
    served = await serve(`${folder}/data`, {
      CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST,
      ...WITHOUT_HISTORY,
    })
    url = served.url.replace('127.0.0.1', MAPPED_HOST)
    browser = await TestBrowser.start()
  })
  afterAll(async () => {
    await browser.end()
    served.process.kill('SIGTERM')
    await served.ended
  })

  test(
    'pauses the clock, steps by exactly one event, and returns to the same state',
    { timeout: 180_000 },
    async () => {
      const { page, faults } = await as('trainee', '/simulator')
      await page.getByLabel('Scenario', { exact: true }).selectOption('swap-fairness-basic')
      await page.getByRole('button', { name: 'Open session' }).click()
      await page.getByTestId('virtual-time').waitFor()
      await page.getByRole('button', { name: '×60', exact: true }).click()
      await expect.poll(() => eventsOf(page)).toBeGreaterThan(0)
      await page.getByRole('button', { name: 'Pause', exact: true }).click()
      await page.getByText('paused', { exact: true }).waitFor()
      const [events, hash] = [await eventsOf(page), await hashOf(page)]
      for (let asked = 0; asked < 2; asked += 1) await page.waitForResponse(/\/session$/)
      expect([await eventsOf(page), await hashOf(page)]).toEqual([events, hash])
      await page.getByRole('button', { name: 'Step' }).click()
      await expect.poll(() => eventsOf(page)).toBe(events + 1)
      await goTo(page, '0:30:00')
      const later = await hashOf(page)
      await page.getByRole('button', { name: 'Snapshot', exact: true }).click()
      await page.getByRole('button', { name: 'Restore' }).waitFor()
      await goTo(page, '0:15:00')
      expect(await hashOf(page)).not.toBe(later)
      await goTo(page, '0:30:00')
      expect(await hashOf(page)).toBe(later)
      await goTo(page, '0:20:00')
      await page.getByRole('button', { name: 'Restore' }).click()
      await expect.poll(() => hashOf(page)).toBe(later)
      const before = idOf(page)
      await page.getByRole('button', { name: /^Fork/ }).click()
      await expect.poll(() => idOf(page)).not.toBe(before)
      await expect.poll(() => hashOf(page)).toBe(later)
      expect(faults).toEqual([])
      for (const id of [before, idOf(page)]) await ask('DELETE', `/simulations/${id}`)
      await page.context().close()
    },
  )

  test(
    "sends every write of a session's pages below its address, and never looks live",
    { timeout: 180_000 },
    async () => {
      const id = await opened()
      const { page, faults, writes } = await as('instructor', `/simulator/${id}/settings`)
      const config = (await ask('GET', '/config')).body as { readonly revision: number }
      await page.getByLabel('default_vram_overcommit_percent').fill('70')
      await page.getByRole('button', { name: 'Plan change' }).click()
      const apply = page.getByRole('region', { name: 'Plan' }).getByRole('button', { name: 'Apply' })
      await apply.waitFor()
      if (await apply.isDisabled()) await page.getByRole('checkbox').check()
      await apply.click()
      await expect
        .poll(
          async () =>
            ((await ask('GET', `/simulations/${id}/api/v1/config`)).body as Record<string, number>)[
              'default_vram_overcommit_percent'
            ],
        )
        .toBe(70)
      expect(((await ask('GET', '/config')).body as { readonly revision: number }).revision).toBe(
        config.revision,
      )
      for (const name of ['Dashboard', 'Tasks', 'Nodes', 'Groups', 'Events', 'Faults']) {
        await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
        await page.getByRole('heading', { level: 1, name }).waitFor()
        expect(new URL(page.url()).pathname).toContain(`/simulator/${id}`)
        const top = await page.locator('header').innerText()
        expect(top).toContain('SIM')
        expect(top).not.toMatch(/live/i)
        expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(0)
      }
      await page.getByRole('button', { name: 'Step' }).click()
      await page.getByRole('button', { name: 'Snapshot', exact: true }).click()
      await page.getByLabel('Node', { exact: true }).locator('option').first().waitFor({ state: 'attached' })
      await page.getByRole('button', { name: 'Inject hidden fault' }).click()
      await page.getByText('The fault has started.').waitFor()
      expect(writes.length).toBeGreaterThanOrEqual(5)
      expect(writes.filter((path) => !path.startsWith(`/api/v1/simulations/${id}/`))).toEqual([])
      expect(faults).toEqual([])
      await ask('DELETE', `/simulations/${id}`)
      await page.context().close()
    },
  )

  test(
    'keeps hidden faults of an exercise from the trainee, and gives a reason for every point',
    { timeout: 180_000 },
    async () => {
      const { page, answers, faults } = await as('trainee', '/simulator')
      await page
        .getByRole('article', { name: 'Handle a lost node' })
        .getByRole('button', { name: 'Start' })
        .click()
      await page.getByRole('region', { name: 'Questions' }).waitFor()
      const id = idOf(page)
      const teacher = await as('instructor', `/simulator/${id}/instructor`)
      await teacher.page
        .getByLabel('Node', { exact: true })
        .locator('option')
        .first()
        .waitFor({ state: 'attached' })
      await teacher.page.getByLabel('Fault', { exact: true }).selectOption('The clock of a node drifts')
      await teacher.page.getByRole('button', { name: 'Inject hidden fault' }).click()
      await teacher.page.getByRole('group', { name: 'Faults' }).getByText('clock_drift').waitFor()
      expect(await teacher.page.getByRole('group', { name: 'Faults' }).innerText()).toContain('hidden')
      await teacher.page.context().close()
      for (const name of ['Faults', 'Dashboard', 'Tasks', 'Nodes', 'Events', 'Settings', 'Exercise']) {
        await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
        await page.waitForResponse(/\/session$/)
        await page.getByRole('button', { name: 'Step' }).click()
        await page.waitForResponse(/\/session$/)
        expect(await page.content(), name).not.toMatch(/clock_drift|"crash|crash"/)
      }
      const read = await Promise.all(answers)
      expect(read.length).toBeGreaterThan(10)
      expect(
        read.filter((text) => /clock_drift|"crash"/.test(text) && !text.startsWith('{"openapi"')),
      ).toEqual([])
      const question = page.getByRole('region', { name: 'Questions' }).locator('form').first()
      await question.locator('select, input').first().waitFor()
      if ((await question.locator('select').count()) > 0)
        await question.locator('select').selectOption('node-0')
      else await question.locator('input').fill('node-0')
      await question.getByRole('button', { name: 'Answer' }).click()
      await page.getByText('answered: node-0').waitFor()
      // Requests in flight when the session ends are refused, which the console reports.
      expect(faults).toEqual([])
      await page.getByRole('button', { name: 'Finish and show score' }).click()
      await page.getByRole('button', { name: 'Finish', exact: true }).click()
      await page.getByTestId('score').waitFor()
      const report = (await ask('GET', `/simulations/${id}/report`)).body as {
        readonly score: { readonly points: number; readonly of: number }
        readonly marks: readonly { readonly reason: string }[]
      }
      expect(await page.getByTestId('score').innerText()).toBe(
        `${report.score.points} of ${report.score.of} points`,
      )
      for (const { reason } of report.marks) await page.getByText(reason, { exact: true }).first().waitFor()
      await page.getByRole('region', { name: 'Reference solution' }).getByRole('listitem').first().waitFor()
      await expectReplay(page)
      expect(await page.locator('main').innerText()).not.toContain('NaN')
      await page.context().close()
    },
  )

  test('reports an error of a text at its line, and does not open it', async () => {
    const { page, writes } = await as('trainee', '/simulator')
    await page.getByRole('button', { name: 'Enter custom YAML' }).click()
    await page
      .getByLabel('Scenario, YAML or JSON')
      .fill('scenario: mine\nversion: 1\nfleet: []\nnonsense: 3\n')
    await page.getByRole('button', { name: /^Line 4/ }).click()
    await page.getByRole('status').filter({ hasText: 'The text is not valid yet.' }).waitFor()
    await page.getByRole('button', { name: 'Open session' }).press('Enter')
    expect(
      await page
        .getByLabel('Scenario, YAML or JSON')
        .evaluate((area) => (area as unknown as { readonly selectionStart: number }).selectionStart),
    ).toBe('scenario: mine\nversion: 1\nfleet: []\n'.length)
    expect(writes).toEqual(['/api/v1/scenarios/validate'])
    await page.context().close()
  })

  test(
    'asks an unknown user to sign in on every page, and requests nothing else',
    { timeout: 180_000 },
    async () => {
      for (const path of ['/', '/tasks', '/simulator']) {
        const { page, faults } = await browser.page()
        const asked: string[] = []
        page.on('request', (request) => asked.push(new URL(request.url()).pathname))
        await page.goto(`${url}${path}`)
        await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
        if (path === '/') expect(await faultsInEveryLook(page)).toEqual([])
        expect(asked.filter((each) => each.startsWith('/api/'))).toEqual(['/api/v1/auth/session'])
        expect(faults).toEqual([])
        await page.context().close()
      }
    },
  )
})
