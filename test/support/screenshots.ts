/**
 * `make screenshots`: a picture of every screen before a fresh controller with its simulated fleet, for docs/page.md. Light, 1280 wide, written to
 * docs/images.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import type { NodePage } from '../../controller/api/schema/node.ts'
import type { TaskPage } from '../../controller/api/schema/task.ts'
import { CHROMIUM, MAPPED_HOST, TestBrowser } from './browser.ts'

const ROOT = join(import.meta.dirname, '../..')
const IMAGES = join(ROOT, 'docs/images')
const SETTLE_MS = 2_500

if (CHROMIUM === null) {
  console.error('there is no chromium')
  process.exit(2)
}
const folder = mkdtempSync(join(tmpdir(), 'headroom-screenshots-'))
const server = spawn(process.execPath, ['--import', join(ROOT, 'cli/require-node.mjs'), join(ROOT, 'cli/main.ts'), 'serve'], {
  env: {
    ...process.env,
    CONTROLLER_HTTP_PORT: '0',
    CONTROLLER_DATA_DIR: join(folder, 'data'),
    CONTROLLER_HTTP_ALLOWED_HOSTS: MAPPED_HOST,
    LOG_LEVEL: 'error',
  },
  stdio: ['ignore', 'pipe', 'inherit'],
})
try {
  const url = await listening()
  await fetch(`${url}/api/v1/config`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ default_vram_overcommit_percent: 50 }),
  })
  mkdirSync(IMAGES, { recursive: true })
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
  const get = async <T>(path: string): Promise<T> => (await (await fetch(`${url}/api/v1${path}`)).json()) as T
  const node = (await get<NodePage>('/nodes')).items[0]?.node_id ?? ''
  const task = (await get<TaskPage>('/tasks?state=running&limit=1')).items[0]?.id ?? ''
  const screens: readonly (readonly [name: string, path: string])[] = [
    ['dashboard', '/'],
    ['tasks', '/tasks'],
    ['task', `/tasks/${task}`],
    ['nodes', '/nodes'],
    ['node', `/nodes/${node}`],
    ['groups', '/groups'],
    ['planner', '/planner'],
    ['simulator', '/simulator'],
    ['events', '/events'],
    ['settings', '/settings'],
  ]
  const browser = await TestBrowser.start()
  const { page } = await browser.page({ width: 1280, height: 800 })
  for (const [name, path] of screens) {
    await page.goto(`${url.replace('127.0.0.1', MAPPED_HOST)}${path}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForTimeout(SETTLE_MS)
    await page.screenshot({ path: join(IMAGES, `${name}.png`) })
    console.log(`docs/images/${name}.png`)
  }
  await browser.end()
}
