import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createClient } from '../../clients/typescript/client.ts'
import { connectionOf } from '../../clients/typescript/connection.ts'

let folder = ''
let server: Server | null = null
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom local %socket-'))
  mkdirSync(join(folder, 'headroom'))
})
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
  server = null
  rmSync(folder, { recursive: true })
})

const path = (): string => join(folder, 'headroom/gpu-server.sock')
const env = (more: Record<string, string> = {}) => ({
  XDG_RUNTIME_DIR: folder,
  XDG_CONFIG_HOME: folder,
  ...more,
})

async function listen(answer: (url: string, body: string) => [status: number, body: string]): Promise<void> {
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const [status, text] = answer(request.url ?? '', body)
      const type = status < 300 ? 'application/json' : 'application/problem+json'
      response.writeHead(status, { 'content-type': type }).end(text)
    })
  })
  await new Promise<void>((done) => server?.listen(path(), done))
}

describe('the socket of a server on this host', () => {
  it('gives the address where no option, variable or context does', async () => {
    expect(connectionOf({}, env()).source).toBe('default')
    writeFileSync(path(), 'no socket')
    expect(connectionOf({}, env()).source).toBe('default')
    rmSync(path())
    await listen(() => [200, '{}'])
    expect(connectionOf({}, env())).toMatchObject({ source: 'socket', token: null })
    expect(connectionOf({ url: 'http://a' }, env()).url).toBe('http://a')
    expect(connectionOf({}, env({ HEADROOM_URL: 'http://b' })).url).toBe('http://b')
    expect(connectionOf({}, env({ VENDOR_CONTROLLER_URL: 'http://c' })).url).toBe('http://c')
    const contexts = { lab: { url: 'http://d', token: 'of-lab' } }
    const settings = JSON.stringify({ current_context: 'lab', contexts })
    writeFileSync(join(folder, 'headroom/client.json'), settings, { mode: 0o600 })
    expect(connectionOf({}, env())).toMatchObject({ url: 'http://d', token: 'of-lab' })
  })

  it('carries requests, bodies and problems', async () => {
    const asked: string[] = []
    await listen((url, body) => {
      asked.push(`${url} ${body}`)
      return url.includes('tasks')
        ? [409, '{"code": "conflict", "detail": "The task is final."}']
        : [200, '{"version": "1"}']
    })
    const { url } = connectionOf({}, env())
    const client = createClient({ url, attempts: 1, environment: {} })
    expect(await client.version()).toEqual({ version: '1' })
    const submit = client.tasks.submit({ vram_mib: 1, command: ['é'] })
    await expect(submit).rejects.toMatchObject({ status: 409, message: 'The task is final.' })
    expect(asked).toEqual(['/api/v1/version ', '/api/v1/tasks {"vram_mib":1,"command":["é"]}'])
  })

  it('says what is wrong when it does not exist, or answers nothing before an abort', async () => {
    const at = { url: `unix://${folder.replaceAll(' ', '%20').replace('%s', '%25s')}/none`, attempts: 1 }
    await expect(createClient(at).version()).rejects.toThrow('the socket does not exist')
    server = createServer(() => {})
    await new Promise<void>((done) => server?.listen(path(), done))
    const { url } = connectionOf({}, env())
    const abort = new AbortController()
    const waiting = createClient({ url, attempts: 1 }).version({ signal: abort.signal })
    setImmediate(() => abort.abort(new Error('enough')))
    await expect(waiting).rejects.toThrow('enough')
    expect(() => createClient({ url: 'unix://host/x' })).toThrow('is not the address of a controller')
  })
})
