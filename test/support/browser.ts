/**
 * A real Chromium with a real controller and a simulated fleet, under a host name that is mapped to this
 * machine: plain HTTP on localhost has permissions that `http://{address}:30080` does not have. Faults of a
 * page are collected: errors in the console and violations of the policy.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import axe from 'axe-core'
import {
  chromium,
  type Browser,
  type BrowserContext,
  type Download,
  type LaunchOptions,
  type Locator,
  type Page,
} from 'playwright-core'

export const CHROMIUM =
  ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
    existsSync(path),
  ) ?? null

/** Mapped to 127.0.0.1 only in the browser; the controller must allow it (CONTROLLER_HTTP_ALLOWED_HOSTS). */
export const MAPPED_HOST = 'headroom.test'

export interface PageOptions {
  readonly width?: number
  readonly height?: number
  readonly colorScheme?: 'light' | 'dark'
  readonly timezoneId?: string
}

export function launched(): LaunchOptions {
  if (CHROMIUM === null) throw new Error('there is no chromium')
  const args = [
    `--host-resolver-rules=MAP ${MAPPED_HOST} 127.0.0.1`,
    '--no-sandbox',
    '--disable-gpu',
    '--force-color-profile=srgb',
  ]
  return { executablePath: CHROMIUM, args }
}

/** A shared browser does not tell where it has saved a file. */
export async function savedBytes(download: Download): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-saved-'))
  try {
    const path = join(folder, 'saved')
    await download.saveAs(path)
    return readFileSync(path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export class TestBrowser {
  readonly #browser: Browser
  readonly #contexts: BrowserContext[] = []

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  static async start(): Promise<TestBrowser> {
    const shared = process.env['HEADROOM_TEST_BROWSER']
    const browser = shared === undefined ? chromium.launch(launched()) : chromium.connect(shared)
    return new TestBrowser(await browser)
  }

  /** A shared browser stays open without the contexts of this test file. */
  async end(): Promise<void> {
    await this.#browser.close()
  }

  /**
   * A separate context with its own cookies and storage. Several pages of one context are tabs of one
   * browser.
   */
  async context({
    width = 1440,
    height = 900,
    colorScheme = 'light',
    timezoneId = 'UTC',
  }: PageOptions = {}): Promise<BrowserContext> {
    const context = await this.#browser.newContext({
      viewport: { width, height },
      colorScheme,
      timezoneId,
      reducedMotion: 'reduce',
    })
    // The page may answer late on a loaded machine.
    context.setDefaultTimeout(60_000)
    this.#contexts.push(context)
    return context
  }

  async page(options: PageOptions = {}): Promise<WatchedPage> {
    return watched(await (await this.context(options)).newPage())
  }
}

export interface WatchedPage {
  readonly page: Page
  /** Errors in the console, exceptions and policy violations, as text. */
  readonly faults: readonly string[]
}

export async function watched(page: Page): Promise<WatchedPage> {
  const faults: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`exception: ${error.message}`))
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', (event) => console.error('policy: ' + ` +
      `event.violatedDirective + ' ' + event.blockedURI))`,
  )
  return { page, faults }
}

/**
 * Returns the open dialog once it has the focus. It takes the focus some milliseconds after it appears: a key
 * that is pressed earlier goes to the previously focused button, which changes nothing.
 */
export async function focusedDialog(page: Page): Promise<Locator> {
  const dialog = page.getByRole('alertdialog')
  await dialog.locator(':focus').waitFor()
  return dialog
}

/**
 * Closes the page with its context once its route handlers have ended: a fetch that is cut rejects outside of
 * every test, and the runner reports an error although all tests pass.
 */
export async function closeRouted(page: Page): Promise<void> {
  await page.unrouteAll({ behavior: 'wait' })
  await page.context().close()
}

/** Presses the button of the open dialog by keyboard, and waits until the dialog has closed. */
export async function confirmByKey(page: Page, name: string): Promise<void> {
  const dialog = await focusedDialog(page)
  await dialog.getByRole('button', { name, exact: true }).press('Enter')
  await dialog.waitFor({ state: 'detached' })
}

/** Serious and critical findings of axe, one per line. @param rules only these rules; all if omitted. */
export async function accessibilityFaults(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  // The policy allows no added script; the debugger may run one.
  if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(axe.source)
  const options = {
    resultTypes: ['violations'],
    // No enabled rule reads the style sheets.
    preload: false,
    ...(rules === undefined ? {} : { runOnly: { type: 'rule', values: rules } }),
  }
  const { violations } = (await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`)) as {
    readonly violations: readonly {
      readonly id: string
      readonly impact: string
      readonly help: string
      readonly nodes: readonly { readonly target: unknown; readonly failureSummary: string }[]
    }[]
  }
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, help, nodes }) =>
        `${id}: ${help} at ${nodes
          .slice(0, 3)
          .map(({ target }) => JSON.stringify(target))
          .join(', ')}`,
    )
}

const WIDTHS = [390, 1440] as const
const SCHEMES = ['dark', 'light'] as const

/**
 * The faults of a page, wide and narrow, dark and light, one per line: horizontal scrolling, and the findings
 * of axe. The page is loaded once and stays open; of axe's rules only contrast depends on the colours, so the
 * others are checked once per width.
 */
export async function faultsInEveryLook(page: Page): Promise<readonly string[]> {
  const faults: string[] = []
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 })
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme })
      const sideways = await sidewaysPixels(page)
      const found = await accessibilityFaults(
        page,
        colorScheme === SCHEMES[0] ? undefined : ['color-contrast'],
      )
      faults.push(
        ...[...(sideways > 0 ? [`${sideways} px to scroll sideways`] : []), ...found].map(
          (each) => `${width} ${colorScheme}: ${each}`,
        ),
      )
    }
  }
  return faults
}

/** Returns whether an element is wider than the window. */
export async function sidewaysPixels(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}
