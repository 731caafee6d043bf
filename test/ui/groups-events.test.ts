/** Groups and events in a browser. */
import { describe, expect, test } from 'vitest'
import type { EventPage } from '../../controller/api/observe/event-schema.ts'
import type { NodePage } from '../../controller/api/nodes/schema.ts'
import type { GroupBody } from '../../controller/api/groups/schema.ts'
import { CHROMIUM } from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'
import { getJson } from '../support/served.ts'

const ui = servedPage(`${temporaryFolder()}/data`)

describe.skipIf(CHROMIUM === null)('groups and events', () => {
  const groups = async () =>
    (await getJson<{ readonly items: readonly GroupBody[] }>(`${ui.served.url}/api/v1/groups`)).items

  test('A group is planned, created, changed and deleted', { timeout: 300_000 }, async () => {
    const { page, faults } = await ui.browser.page()
    await page.goto(`${ui.url}/groups`)
    const had = (await groups()).length
    await page.getByRole('button', { name: 'New group' }).click()
    const editor = page.getByRole('form', { name: 'New group' })
    await editor.getByLabel('Name').fill('night-shift')
    await editor.getByRole('checkbox').first().check()
    await editor.getByRole('button', { name: 'Plan' }).click()
    await editor.getByRole('heading', { name: 'Impact' }).waitFor()
    expect(await groups()).toHaveLength(had)
    await editor.getByRole('button', { name: 'Apply' }).click()
    await page.getByRole('button', { name: 'Edit night-shift' }).waitFor()
    expect((await groups()).find(({ id }) => id === 'night-shift')?.node_ids).toHaveLength(1)
    const { items: nodes } = await getJson<NodePage>(`${ui.served.url}/api/v1/nodes`)
    await page
      .getByRole('row')
      .filter({ hasText: 'night-shift' })
      .getByRole('link', { name: nodes[0]?.name ?? '', exact: true })
      .waitFor()
    // Another member, by keyboard: planned first, and discarded once before it is applied.
    await page.getByRole('button', { name: 'Edit night-shift' }).press('Enter')
    const edited = page.getByRole('form').filter({ has: page.getByRole('group', { name: 'Members' }) })
    const members = edited.getByRole('checkbox')
    await expect
      .poll(() =>
        members.evaluateAll((all) => all.filter((each) => (each as { checked?: boolean }).checked).length),
      )
      .toBe(1)
    await members.nth(1).press('Space')
    await edited.getByRole('button', { name: 'Plan' }).press('Enter')
    await edited.getByText('1 node joins').waitFor()
    await edited.getByRole('button', { name: 'Back' }).press('Enter')
    expect((await groups()).find(({ id }) => id === 'night-shift')?.node_ids).toHaveLength(1)
    await edited.getByRole('button', { name: 'Plan' }).press('Enter')
    await edited.getByRole('button', { name: 'Apply' }).press('Enter')
    await expect
      .poll(async () => (await groups()).find(({ id }) => id === 'night-shift')?.node_ids.length)
      .toBe(2)
    await page.getByRole('button', { name: 'Edit night-shift' }).click()
    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByRole('button', { name: 'Delete group' }).click()
    await expect.poll(async () => (await groups()).some(({ id }) => id === 'night-shift')).toBe(false)
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('An editor that is opened during a refresh of the lists stays open', async () => {
    const { page, faults } = await ui.browser.page()
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ description: '', node_ids: [] })
    await fetch(`${ui.served.url}/api/v1/groups/day-shift`, { method: 'PUT', headers, body })
    await page.goto(`${ui.url}/groups`)
    await page.getByRole('button', { name: 'Edit day-shift' }).click()
    await page.getByLabel('Description').fill('by day')
    await page.getByRole('button', { name: 'Plan' }).click()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await page.route(
      ({ pathname }) => pathname === '/api/v1/groups',
      async (route) => {
        await released
        await route.continue()
      },
    )
    const readAgain = page.waitForRequest((request) => new URL(request.url()).pathname === '/api/v1/groups')
    await page.getByRole('button', { name: 'Apply' }).click()
    await readAgain
    await page.getByRole('button', { name: 'Edit day-shift' }).click()
    const editor = page.getByRole('form', { name: 'Group day-shift' })
    await editor.getByLabel('Description').fill('by night')
    release()
    await page
      .getByRole('row')
      .filter({ hasText: 'day-shift' })
      .getByText('by day', { exact: true })
      .waitFor()
    await editor.getByRole('button', { name: 'Plan' }).click()
    await editor.getByRole('heading', { name: 'Impact' }).waitFor()
    expect(await editor.getByLabel('Description').inputValue()).toBe('by night')
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('An invalid name is refused by the controller with a message, and nothing changes', async () => {
    const { page } = await ui.browser.page()
    await page.goto(`${ui.url}/groups`)
    const before = await groups()
    await page.getByRole('button', { name: 'New group' }).click()
    await page.getByLabel('Name').fill('<b>x</b>')
    await page.getByRole('button', { name: 'Plan' }).click()
    await page.getByRole('alert').getByText(/./).first().waitFor()
    expect(await groups()).toEqual(before)
    await page.context().close()
  })

  test(
    'New events appear unless the focus is in the list, and each links to the charts around it',
    { timeout: 300_000 },
    async () => {
      const { page, faults } = await ui.browser.page()
      await page.goto(`${ui.url}/events?kind=task_submitted`)
      const first = page.locator('tbody tr').first()
      await first.waitFor()
      const submit = async (name: string): Promise<void> => {
        const body = JSON.stringify({ name, vram_mib: 900_000, command: ['x'] })
        await fetch(`${ui.served.url}/api/v1/tasks`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        })
      }
      await page.getByLabel('Follow').press('Space')
      await submit('followed')
      await page.getByRole('link', { name: 'followed', exact: true }).waitFor()
      await first.getByRole('link').first().focus()
      await submit('held')
      await page.getByRole('button', { name: /new$/ }).waitFor()
      expect(await page.getByRole('link', { name: 'held', exact: true }).count()).toBe(0)
      await page.getByLabel('Follow').focus()
      await page.getByRole('link', { name: 'held', exact: true }).waitFor()

      const asked = page.waitForRequest((request) => /\/series\?.*max_points=360/.test(request.url()))
      await page.locator('tbody tr').last().getByRole('link').first().press('Enter')
      await page.waitForURL(/[?&]at=/)
      const at = Date.parse(new URL(page.url()).searchParams.get('at') ?? '')
      const { searchParams } = new URL((await asked).url())
      expect(
        [searchParams.get('from'), searchParams.get('to')].map((instant) => Date.parse(instant ?? '') - at),
      ).toEqual([-1_800_000, 1_800_000])
      await page.getByRole('figure', { name: 'Utilization' }).waitFor()
      const range = page.getByLabel('Time range')
      expect(await range.locator('option:checked').innerText()).toMatch(/^around \d{4}-/)
      await range.selectOption('-1h')
      await expect.poll(() => page.url()).not.toContain('at=')
      expect(faults).toEqual([])
      await page.context().close()
    },
  )

  test('Events are listed newest first, are filtered by the address, and keep their places', async () => {
    const { page } = await ui.browser.page()
    await page.goto(`${ui.url}/events?kind=task_submitted`)
    const rows = page.locator('tbody tr')
    await rows.first().waitFor()
    const ids = await rows.evaluateAll((all) =>
      all.map((row) => Number((row as { id: string }).id.replace('event-', ''))),
    )
    expect(ids).toEqual([...ids].sort((a, b) => b - a))
    const { items } = await getJson<EventPage>(
      `${ui.served.url}/api/v1/events?kind=task_submitted&order=newest&limit=200`,
    )
    const shown = items.filter(({ seq }) => seq <= (ids[0] ?? 0)).slice(0, ids.length)
    expect(ids).toEqual(shown.map(({ seq }) => seq))
    expect(ids.length).toBeLessThanOrEqual(150)
    await page.goto(`${ui.url}/events?task=there-is-none`)
    await page.getByRole('alert').getByText('must be the ID or name of a task').waitFor()
    await page.goto(`${ui.url}/events?kind=duplicate_node`)
    await page.getByText('No matching events.').waitFor()
    await page.context().close()
  })
})
