/** Time of a new browser from an address to the visible content. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { TestBrowser } from '../../support/browser.ts'

const ASSETS = join(import.meta.dirname, '../../../dist/ui/assets')

export interface Shown {
  /** From the start of the navigation to the frame that shows it. */
  readonly ms: number
  /** Rows of tables in the document. */
  readonly rows: number
  /** Compressed size of the scripts. */
  readonly scriptBytes: number
}

export interface Wanted {
  readonly path: string
  /** It is visible when it shows anything except an empty text or a dash. */
  readonly selector: string
  /** Factor by which the processor is slowed down. */
  readonly slowed?: number
}

/** Nothing is cached: each has a separate browser profile. */
export async function shownWithin(
  browser: TestBrowser,
  url: string,
  { path, selector, slowed = 1 }: Wanted,
): Promise<Shown> {
  const { page } = await browser.page()
  if (slowed > 1)
    await (await page.context().newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: slowed })
  await page.addInitScript(`globalThis.shownAt = new Promise((resolve) => {
    const look = () => {
      const text = document.querySelector(${JSON.stringify(selector)})?.textContent.trim() ?? ''
      if (text === '' || text.startsWith('—')) return
      observer.disconnect()
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
    }
    const observer = new MutationObserver(look)
    observer.observe(document, { childList: true, subtree: true, characterData: true })
  })`)
  await page.goto(`${url}${path}`, { waitUntil: 'commit' })
  const shown = await page.evaluate<
    Omit<Shown, 'scriptBytes'> & { readonly bytes: number }
  >(`globalThis.shownAt.then((ms) => ({
    ms,
    rows: document.querySelectorAll('tbody tr').length,
    bytes: performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js'))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
  }))`)
  await page.context().close()
  return { ms: shown.ms, rows: shown.rows, scriptBytes: shown.bytes + workerBytes() }
}

/** The page does not see what the shared worker has loaded. */
function workerBytes(): number {
  const name = readdirSync(ASSETS).find((each) => each.startsWith('feed-worker') && each.endsWith('.js.gz'))
  if (name === undefined) throw new Error(`no compressed worker in ${ASSETS}: run make ui`)
  return statSync(join(ASSETS, name)).size
}
