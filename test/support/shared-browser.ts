/** The browser that the test files of one run share; each has contexts of its own (browser.ts). */
import { chromium } from 'playwright-core'
import { CHROMIUM, launched } from './browser.ts'

export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
  if (CHROMIUM === null) return undefined
  const server = await chromium.launchServer({ ...launched(), host: '127.0.0.1' })
  process.env['HEADROOM_TEST_BROWSER'] = server.wsEndpoint()
  return () => server.close()
}
