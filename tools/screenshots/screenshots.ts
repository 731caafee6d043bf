/**
 * `make screenshots`: a picture of every screen before a fresh controller with its simulated fleet, for
 * docs/page.md: 1280 wide, light in docs/images and dark in docs/images/dark. Arguments name the pictures
 * that are wanted; without any, all are made.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import type { Page } from 'playwright-core'
import { CHROMIUM, MAPPED_HOST, TestBrowser } from '../../test/support/browser.ts'
import { SCREENS, type Ask, type Screen } from './screens.ts'

const ROOT = join(import.meta.dirname, '../..')
const IMAGES_OF = { light: 'docs/images', dark: 'docs/images/dark' } as const
const SETTLE_MS = 2_500
const REDRAW_MS = 500

if (CHROMIUM === null) {
  console.error('there is no chromium')
  process.exit(2)
}
const folder = mkdtempSync(join(tmpdir(), 'headroom-screenshots-'))
const server = spawn(
  process.execPath,
  ['--import', join(ROOT, 'cli/require-node.mjs'), join(ROOT, 'cli/main.ts'), 'serve'],
  {
    env: {
      ...process.env,
      CONTROLLER_HTTP_PORT: '0',
      CONTROLLER_DATA_DIR: join(folder, 'data'),
      CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST,
      LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  },
)
try {
  const url = await listening()
  await fetch(`${url}/api/v1/config`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ default_vram_overcommit_percent: 50 }),
  })
  mkdirSync(join(ROOT, IMAGES_OF.dark), { recursive: true })
  await takeAll(url)
} finally {
  server.kill('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
}

function listening(): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = ''
    server.once('exit', (code) => reject(new Error(`headroom serve ended with ${code}`)))
    server.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      const url = /http:\/\/[\d.]+:\d+/.exec(output)?.[0]
      if (url !== undefined) resolve(url)
    })
  })
}

async function takeAll(url: string): Promise<void> {
  const wanted = process.argv.slice(2)
  const browser = await TestBrowser.start()
  const { page } = await browser.page({ width: 1280, height: 800 })
  for (const screen of SCREENS) {
    if (wanted.length > 0 && !wanted.includes(screen.name)) continue
    const own = await screen.serve?.()
    await take(page, own?.url ?? url, screen)
    await own?.end()
  }
  await browser.end()
}

async function take(page: Page, url: string, { name, pathOf, prepare, part }: Screen): Promise<void> {
  await page.goto(`${url.replace('127.0.0.1', MAPPED_HOST)}${await pathOf(askOf(url))}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await prepare?.(page)
  await page.waitForTimeout(SETTLE_MS)
  // The sticky top bar would cover a part that is larger than the window.
  if (part !== undefined) await page.evaluate(`document.querySelector('header').style.position = 'static'`)
  for (const [colorScheme, folder] of Object.entries(IMAGES_OF) as ['light' | 'dark', string][]) {
    await page.emulateMedia({ colorScheme })
    await page.waitForTimeout(REDRAW_MS)
    const path = join(folder, `${name}.png`)
    await (part?.(page) ?? page).screenshot({ path: join(ROOT, path) })
    console.log(path)
  }
}

function askOf(url: string): Ask {
  return async <T>(method: string, path: string, body?: object) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }
}
