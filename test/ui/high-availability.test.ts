/**
 * The badge of the controllers, with two real controllers on one PostgreSQL store: which one leads, and
 * whether another one could take over.
 */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CHROMIUM, faultsInEveryLook, MAPPED_HOST, TestBrowser } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { FROM_SOURCES_ENV, temporaryFolder } from '../support/headroom-command.ts'
import { headroom, Member } from '../support/live-cluster.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'

describe.skipIf(CHROMIUM === null || whyNoPostgres() !== null)('two controllers', () => {
  const folder = temporaryFolder()
  const members = new Map<string, Member>()
  const ports = new Map<string, number>()
  let store: PostgresServer
  let browser: TestBrowser

  beforeAll(async () => {
    browser = await TestBrowser.start()
    store = await PostgresServer.start({ fsync: false })
    for (const name of ['head-1', 'head-2']) {
      ports.set(name, await freePort())
      members.set(name, memberNamed(name))
      await start(name)
    }
  })
  afterAll(async () => {
    await browser?.end()
    await Promise.all([...members.values()].map((member) => member.end()))
    await store?.remove()
  })

  function memberNamed(name: string): Member {
    return new Member(name, headroom('serve'), {
      ...FROM_SOURCES_ENV,
      CONTROLLER_NAME: name,
      CONTROLLER_STORE_URL: store.url,
      CONTROLLER_DATA_DIR: `${folder}/${name}`,
      CONTROLLER_SECRETS_KEY_FILE: `${folder}/secrets.key`,
      // No broker listens there.
      CONTROLLER_NATS_URL: 'nats://127.0.0.1:9',
      CONTROLLER_LEASE_MS: '20000',
      CONTROLLER_HTTP_PORT: String(ports.get(name)),
      CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST,
      LOG_LEVEL: 'error',
    })
  }

  async function start(name: string): Promise<void> {
    const answers = (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${ports.get(name)}/livez`).then(
        ({ ok }) => ok,
        () => false,
      )
    await members.get(name)?.start(answers)
  }

  async function open(name: string): Promise<Page> {
    const { page } = await browser.page()
    await page.goto(`http://${MAPPED_HOST}:${ports.get(name)}/`)
    return page
  }

  const badge = (page: Page) => page.locator('#controllers')

  test('The badge names the leader at both addresses, and says when no standby is left', async () => {
    const [first, second] = [await open('head-1'), await open('head-2')]
    for (const page of [first, second]) {
      await badge(page).getByText('head-1 leads, 1 standby').waitFor()
      expect(await badge(page).getAttribute('title')).toBe(
        '1 standby can take over if this controller fails.',
      )
    }
    await members.get('head-1')?.end('SIGKILL')
    await badge(second).getByText('head-2 leads, no standby').waitFor()
    expect(await badge(second).getAttribute('title')).toMatch(/^No standby is available/)
    expect(await faultsInEveryLook(second)).toEqual([])
    // The page of the lost controller says so, and no longer claims anything about the present.
    await first.locator('#freshness[data-status=reconnecting]').waitFor()
    expect(await first.getByRole('main').innerText()).not.toContain('All nodes are up')
    await start('head-1')
    for (const page of [first, second]) await badge(page).getByText('head-2 leads, 1 standby').waitFor()
  })
})
