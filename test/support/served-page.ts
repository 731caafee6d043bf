/**
 * The common start of browser tests: a browser, and a controller whose demonstration has reached the present.
 * Both end with the test file.
 */
import { afterAll, beforeAll } from 'vitest'
import { CHROMIUM, MAPPED_HOST, TestBrowser } from './browser.ts'
import { demonstrationIn } from './demonstration.ts'
import { serve, type Served } from './served.ts'

export class ServedPage {
  readonly #dataDir: string
  readonly #isNew: boolean
  #served: Served | null = null
  #browser: TestBrowser | null = null

  constructor(dataDir: string, isNew: boolean) {
    this.#dataDir = dataDir
    this.#isNew = isNew
  }

  /** The current controller, under its own address. */
  get served(): Served {
    if (this.#served === null) throw new Error('nothing is served before the tests begin')
    return this.#served
  }

  /** The address for the browser. */
  get url(): string {
    return this.served.url.replace('127.0.0.1', MAPPED_HOST)
  }

  get browser(): TestBrowser {
    if (this.#browser === null) throw new Error('there is no browser before the tests begin')
    return this.#browser
  }

  async start(): Promise<void> {
    if (!this.#isNew) await demonstrationIn(this.#dataDir)
    this.#served = await this.#serve('0')
    this.#browser = await TestBrowser.start()
  }

  /** As with kill -9. */
  async kill(): Promise<void> {
    this.served.process.kill('SIGKILL')
    await this.served.ended
  }

  /** At the same address as before. */
  async startAgain(): Promise<void> {
    this.#served = await this.#serve(new URL(this.served.url).port)
  }

  async end(): Promise<void> {
    await this.#browser?.end()
    this.#served?.process.kill('SIGTERM')
    await this.#served?.ended
  }

  #serve(port: string): Promise<Served> {
    return serve(this.#dataDir, { CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST, CONTROLLER_HTTP_PORT: port })
  }
}

/**
 * Call it once, at the top of a test file. Without a browser nothing is started, and the tests are skipped.
 * @param isNew the demonstration starts two hours ago: its swaps follow settings that are made at once
 */
export function servedPage(dataDir: string, { isNew = false } = {}): ServedPage {
  const page = new ServedPage(dataDir, isNew)
  if (CHROMIUM === null) return page
  beforeAll(() => page.start())
  afterAll(() => page.end())
  return page
}
