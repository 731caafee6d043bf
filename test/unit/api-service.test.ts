import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createApi } from '../../controller/api/server.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController } from '../support/api-world.ts'

const UI = fileURLToPath(new URL('../../dist/ui', import.meta.url))

describe('health and version', () => {
  test.each(['/', '//'])('are available at the root and under /api/v1 (%s)', async (root) => {
    const api = await apiClient(new FakeController(), { fleet: 'simulated' })
    expect(await api.send('GET', `${root}livez`)).toMatchObject({ status: 200, body: { status: 'alive' } })
    expect(await api.send('GET', `${root}readyz`)).toMatchObject({
      status: 200,
      body: { status: 'ready', checks: [] },
    })
    const version = {
      name: 'headroom',
      version: '0.0.0-test',
      api: 'v1',
      fleet: 'simulated',
      node: process.version,
      commit: null,
      schema: null,
      store_kind: null,
    }
    expect(await api.send('GET', `${root}version`)).toMatchObject({ status: 200, body: version })
    await api.app.close()
  })

  test('readyz answers 503 while a check fails, and names the check', async () => {
    const checks = [{ name: 'store', ok: false, detail: 'not open yet' }]
    const api = await apiClient(new FakeController(), { readiness: () => checks })
    expect(await api.send('GET', '/readyz')).toMatchObject({
      status: 503,
      body: { status: 'not_ready', checks },
      headers: { 'retry-after': '5' },
    })
    await api.app.close()
  })
})

describe('the page', () => {
  test('is served with its files under a policy that allows nothing from other origins', async () => {
    const api = await apiClient(new FakeController(), { uiDir: UI })
    const page = await api.send('GET', '//')
    expect(page.status).toBe(200)
    expect(page.headers['content-type']).toMatch(/^text\/html/)
    expect(page.headers['content-security-policy']).toBe(
      "default-src 'none';script-src 'self';style-src 'self';img-src 'self';font-src " +
        "'self';connect-src 'self';worker-src 'self';" +
        "base-uri 'none';form-action 'self';frame-ancestors 'none'",
    )
    for (const header of ['strict-transport-security', 'cross-origin-opener-policy', 'origin-agent-cluster'])
      expect(page.headers).not.toHaveProperty(header)
    const files = [...String(page.body).matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) =>
      String(path),
    )
    expect(files.length).toBeGreaterThanOrEqual(3)
    for (const file of files) expect((await api.send('GET', `/${file}`)).status, file).toBe(200)
    await api.app.close()
  })

  test('has no inline style or script in its markup', async () => {
    const api = await apiClient(new FakeController(), { uiDir: UI })
    const { body } = await api.send('GET', '//')
    expect(body).not.toMatch(/<style|style=|<script(?![^>]*\ssrc=)|\son[a-z]+=|javascript:/i)
    await api.app.close()
  })

  test('is served at every path of a page, so that addresses can be shared', async () => {
    const api = await apiClient(new FakeController(), { uiDir: UI })
    const { body } = await api.send('GET', '//')
    for (const path of [
      '//tasks',
      '//tasks/t1',
      '//nodes/some-node?tab=gpus',
      '//settings',
      '//simulator/s1/tasks',
    ]) {
      const page = await api.send('GET', path)
      expect([path, page.status, page.body === body]).toEqual([path, 200, true])
    }
    await api.app.close()
  })

  test('a missing file, also one outside the folder, is answered with a problem document', async () => {
    const api = await apiClient(new FakeController(), { uiDir: UI })
    for (const path of [
      '//assets/none.js',
      '//../package.json',
      '//assets/..%2f..%2fpackage.json',
      '//%2e%2e/package.json',
    ]) {
      expect((await api.send('GET', path)).status, path).toBe(404)
    }
    expect(await api.send('POST', '//')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
    await api.app.close()
  })

  test('A file built later is served too, compressed on request, and cacheable', async () => {
    const uiDir = mkdtempSync(join(tmpdir(), 'page-'))
    mkdirSync(join(uiDir, 'assets'))
    const api = await apiClient(new FakeController(), { uiDir })
    const get = (path: string, headers = {}) => api.app.inject({ method: 'GET', url: path, headers })
    expect((await get('/assets/a-1.js')).statusCode).toBe(404)
    writeFileSync(join(uiDir, 'index.html'), '<!doctype html>')
    writeFileSync(join(uiDir, 'assets/a-1.js'), 'let plain')
    writeFileSync(join(uiDir, 'assets/a-1.js.gz'), gzipSync('let plain'))
    expect(await get('/')).toMatchObject({ statusCode: 200, payload: '<!doctype html>' })
    const plain = await get('/assets/a-1.js')
    expect(plain).toMatchObject({ statusCode: 200, payload: 'let plain' })
    expect(plain.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
    })
    const packed = await get('/assets/a-1.js', { 'accept-encoding': 'gzip, deflate' })
    expect(packed.headers).toMatchObject({
      'content-encoding': 'gzip',
      'content-type': 'application/javascript; charset=utf-8',
    })
    expect(gunzipSync(packed.rawPayload).toString()).toBe('let plain')
    await api.app.close()
    rmSync(uiDir, { recursive: true })
  })

  test('caches do not store responses of the API', async () => {
    const api = await apiClient(new FakeController())
    expect((await api.send('GET', '/config')).headers['cache-control']).toBe('no-store')
    await api.app.close()
  })
})

describe('the server', () => {
  test('closes even if a client keeps its connection open', async () => {
    const world = new FakeController()
    const app = createApi({ commands: world.commands, views: world.views, version: '0' })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    expect((await fetch(`${url}/livez`, { headers: { connection: 'keep-alive' } })).status).toBe(200)
    await app.close()
    await expect(fetch(`${url}/livez`)).rejects.toThrow()
  })

  test('returns a unique request id in each response', async () => {
    const world = new FakeController()
    const app = createApi({ commands: world.commands, views: world.views, version: '0' })
    const ids = await Promise.all(
      [1, 2].map(async () => (await app.inject('/livez')).headers['x-request-id']),
    )
    expect(new Set(ids).size).toBe(2)
    expect(ids[0]).toMatch(/^[0-9a-f]{32}$/)
    await app.close()
  })
})
