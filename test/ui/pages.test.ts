/** Every page, light and dark, wide and narrow: nothing in the console, no violation of the policy, no serious finding of axe, nothing to scroll sideways. */
import type { BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { accessibilityFaults, CHROMIUM, sidewaysPixels, watched } from '../support/browser.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { servedPage } from '../support/served-page.ts'

const PAGES: readonly (readonly [path: string, heading: string])[] = [
  ['/', 'Dashboard'],
  ['/tasks', 'Tasks'],
  ['/nodes', 'Nodes'],
  // The id of a simulated node comes from its name.
  ['/nodes/4726aedd-7477-5c50-b7eb-2c660a62cebc', 'a100-0'],
  ['/groups', 'Groups'],
  ['/events', 'Events'],
  ['/planner', 'Planner'],
  ['/planner?source=trace', 'Planner'],
  ['/simulator', 'Simulator'],
  ['/settings', 'Settings'],
  ['/glossary', 'Glossary'],
]

const ui = servedPage(`${temporaryFolder()}/data`)

describe.skipIf(CHROMIUM === null)('every page', () => {
  for (const width of [1440, 390]) {
    for (const colorScheme of ['light', 'dark'] as const) {
      describe(`at ${width} px, ${colorScheme}`, () => {
        // One browser for all of them, as people have it: a page behind the first finds scripts and styles there.
        let context: BrowserContext
        beforeAll(async () => {
          context = await ui.browser.context({ width, colorScheme })
        })
        afterAll(() => context.close())

        test.each(PAGES)('%s', async (path, heading) => {
          const { page, faults } = await watched(await context.newPage())
          await page.goto(`${ui.url}${path}`)
          await page.getByRole('heading', { level: 1, name: heading }).waitFor()
          await page.locator('#freshness[data-status=live]').waitFor()
          expect(await sidewaysPixels(page)).toBeLessThanOrEqual(0)
          expect(await accessibilityFaults(page)).toEqual([])
          expect(faults).toEqual([])
          await page.close()
        })
      })
    }
  }
})
