import { get } from 'node:http'
import { describe, expect, it } from 'vitest'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { getJson, putJson, serve, WITHOUT_HISTORY } from '../support/served.ts'

interface ConfigAnswer {
  readonly default_vram_overcommit_percent: number
  readonly source: string
}

describe('headroom serve', { timeout: 300_000 }, () => {
  const folder = temporaryFolder()

  it('uses the environment until a setting is persisted, and the persisted one from then on', async () => {
    const data = `${folder}/kill`
    const first = await serve(data, { ...WITHOUT_HISTORY, CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT: '30' })
    expect(await getJson<ConfigAnswer>(`${first.url}/api/v1/config`)).toMatchObject({
      default_vram_overcommit_percent: 30,
      source: 'environment',
    })
    const put = await putJson(`${first.url}/api/v1/config`, { default_vram_overcommit_percent: 70 })
    first.process.kill('SIGKILL')
    expect(put.status).toBe(200)
    expect(await first.ended).toBe('SIGKILL')

    const env = { CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT: '10', LOG_LEVEL: 'info' }
    const second = await serve(data, { ...WITHOUT_HISTORY, ...env })
    expect(await getJson<ConfigAnswer>(`${second.url}/api/v1/config`)).toMatchObject({
      default_vram_overcommit_percent: 70,
      source: 'persisted',
    })
    second.process.kill('SIGTERM')
    expect(await second.ended).toBe(0)
    expect(second.output().match(/.*http:\/\/127.*/g), 'names its address once').toHaveLength(1)
  })

  it('makes one task of a submission that is repeated after kill -9', async () => {
    const data = `${folder}/once`
    const body = JSON.stringify({ name: 'once', vram_mib: 16_000_000 })
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': 'once' }
    const submit = async (url: string) => {
      const answer = await fetch(`${url}/api/v1/tasks`, { method: 'POST', headers, body })
      return {
        id: ((await answer.json()) as { readonly id: string }).id,
        replayed: answer.headers.get('idempotency-replayed'),
      }
    }
    const first = await serve(data, WITHOUT_HISTORY)
    const made = await submit(first.url)
    first.process.kill('SIGKILL')
    expect(made.replayed).toBeNull()
    expect(await first.ended).toBe('SIGKILL')

    const second = await serve(data, WITHOUT_HISTORY)
    expect(await submit(second.url)).toEqual({ id: made.id, replayed: 'true' })
    second.process.kill('SIGTERM')
    expect(await second.ended).toBe(0)
  })

  it('shows a running cluster at once, and stops cleanly on Ctrl-C with an open page', async () => {
    const served = await serve(`${folder}/living`)
    const page = await fetch(`${served.url}/`)
    expect([page.status, page.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('text/html'),
    ])
    await expect
      .poll(
        async () =>
          (await getJson<{ tasks: { by_list: { running: number } } }>(`${served.url}/api/v1/summary`)).tasks
            .by_list.running,
        {
          timeout: 90_000,
        },
      )
      .toBeGreaterThan(0)
    // A browser keeps its connection, which must not delay the stop.
    const kept = get(`${served.url}/api/v1/summary`, { headers: { Connection: 'keep-alive' } })
    kept.on('error', () => {})
    served.process.kill('SIGINT')
    expect(await served.ended).toBe(0)
  })

  it('refuses a second controller on the same data, in one line', async () => {
    const data = `${folder}/two`
    const first = await serve(data, WITHOUT_HISTORY)
    const second = await headroom(['serve'], {
      env: { CONTROLLER_DATA_DIR: data, CONTROLLER_HTTP_PORT: '0' },
    })
    first.process.kill('SIGTERM')
    await first.ended
    expect(second.code).not.toBe(0)
    expect(second.stderr.trim().split('\n')).toHaveLength(1)
    expect(second.stderr).toMatch(/another controller/i)
  })

  it.each([
    ['CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT', '1001', '0 to 1000'],
    ['CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT', '1.5', '0 to 1000'],
    ['CONTROLLER_HTTP_PORT', 'http', '65535'],
    ['LOG_LEVEL', 'loud', 'info'],
  ])('refuses %s=%s with one line that names variable, value and range', async (name, value, range) => {
    const { code, stderr } = await headroom(['serve'], {
      env: { [name]: value, CONTROLLER_DATA_DIR: `${folder}/bad` },
    })
    expect(code).toBe(2)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    for (const part of [name, value, range]) expect(stderr).toContain(part)
  })

  it('reports a port in use in one line', async () => {
    const first = await serve(`${folder}/port`, WITHOUT_HISTORY)
    const port = new URL(first.url).port
    const second = await headroom(['serve'], {
      env: { CONTROLLER_HTTP_PORT: port, CONTROLLER_DATA_DIR: `${folder}/port2`, LOG_LEVEL: 'error' },
    })
    first.process.kill('SIGTERM')
    await first.ended
    expect(second.code).not.toBe(0)
    expect(second.stderr.trim().split('\n')).toHaveLength(1)
    expect(second.stderr).toContain(port)
  })
})
