/** A client with the addresses of several controllers of one cluster. */
import type { RequestListener } from 'node:http'
import { describe, expect, test, vi } from 'vitest'
import { createClient } from '../../clients/typescript/client.ts'
import { firstAnswer, patienceMs } from '../../clients/typescript/first-answer.ts'
import { askedApi, askedServer, deadAddress } from '../support/asked.ts'
import { headroom } from '../support/headroom-command.ts'
import { WAIT } from '../support/wait.ts'

const NO_LEADER = JSON.stringify({ code: 'no_leader', detail: 'No controller is the leader.' })
const noLeader: RequestListener = (_request, response) => {
  response.writeHead(503, { 'content-type': 'application/problem+json', 'retry-after': '0' })
  response.end(NO_LEADER)
}

/** Below the 30 s after which a client gives up; a client that asks the next address in time needs 2 s. */
const soon = () => AbortSignal.timeout(20_000)

/** Accepts connections and never answers, as a stopped controller does. */
async function silentServer(): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = []
  const url = await askedServer(({ method, url: path }) => void asked.push(`${method ?? ''} ${path ?? ''}`))
  return { url, asked }
}

describe('a client with several addresses', () => {
  test('submits through the next address when the first does not listen', async () => {
    const api = await askedApi()
    const client = createClient({ url: `${await deadAddress()}, ${api.url}/`, token: null, attempts: 1 })
    expect(await client.tasks.submit({ name: 'one', vram_mib: 1 })).toMatchObject({ name: 'one' })
    expect((await client.tasks.list()).items).toHaveLength(1)
  })

  test('reads from the next address when no controller leads at the first', async () => {
    const api = await askedApi()
    let asked = 0
    const first = await askedServer((request, response) => {
      asked += 1
      noLeader(request, response)
    })
    const client = createClient({ url: `${first},${api.url}`, token: null })
    expect((await client.tasks.list()).items).toEqual([])
    expect((await client.tasks.list()).items).toEqual([])
    expect(asked).toBe(1)
  })

  test('never repeats a request that may have been carried out', async () => {
    const api = await askedApi()
    const first = await askedServer((request) => request.socket.destroy())
    const client = createClient({ url: `${first},${api.url}`, token: null })
    await expect(client.groups.create({ id: 'g' })).rejects.toThrow(/the connection broke/)
    expect(await client.groups.list()).toEqual([])
  })

  test('names the last address when none listens', async () => {
    const [first, last] = [await deadAddress(), await deadAddress()]
    const client = createClient({ url: `${first},${last}`, token: null, attempts: 1 })
    await expect(client.version()).rejects.toThrow(
      `cannot reach the controller at ${last}: connection refused`,
    )
  })

  test.each(['http://a,', 'http://a,b', Array.from({ length: 9 }, () => 'http://a').join()])(
    'refuses the addresses %s',
    (url) => {
      expect(() => createClient({ url, token: null })).toThrow(TypeError)
    },
  )

  test('asks the next address when the first is silent, and stays there', async () => {
    const [silent, api] = [await silentServer(), await askedApi()]
    const client = createClient({ url: `${silent.url},${api.url}`, token: null, attempts: 1, signal: soon() })
    await client.tasks.submit({ name: 'one', vram_mib: 1 })
    expect((await client.tasks.list()).items).toHaveLength(1)
    expect(silent.asked).toEqual(['POST /api/v1/tasks'])
  })

  test('resumes a stream at the next address when the first breaks it and then is silent', async () => {
    const positions: unknown[] = []
    const streaming = (seq: number, isLast: boolean): RequestListener => {
      return ({ headers }, response) => {
        positions.push(headers['last-event-id'])
        if (positions.length > 1 && !isLast) return
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(`id: ${seq}\nevent: event\ndata: {"seq":${seq}}\n\n`, () => {
          if (!isLast) setImmediate(() => response.destroy())
        })
      }
    }
    const [first, next] = [await askedServer(streaming(1, false)), await askedServer(streaming(2, true))]
    const client = createClient({ url: `${first},${next}`, token: null })
    const seqs: number[] = []
    for await (const { seq } of client.events.follow({ after: 0, signal: soon() })) {
      seqs.push(seq)
      if (seqs.length === 2) break
    }
    expect([seqs, positions]).toEqual([
      [1, 2],
      ['0', '1', '1'],
    ])
  })

  test('takes the late answer of the first address when the next one is silent', async () => {
    const silent = await silentServer()
    const slow = await askedServer((_request, response) => {
      const isAskedToo = setInterval(() => {
        if (silent.asked.length === 0) return
        clearInterval(isAskedToo)
        response.end('{"version":"1"}')
      }, 20)
    })
    const client = createClient({ url: `${slow},${silent.url}`, token: null, attempts: 1, signal: soon() })
    expect(await client.version()).toEqual({ version: '1' })
    expect(silent.asked).toHaveLength(1)
  })

  test.each([['HEADROOM_URL'], ['VENDOR_CONTROLLER_URL']])(
    'of the command line asks the next address of %s when the first is silent',
    async (variable) => {
      const [silent, api] = [await silentServer(), await askedApi()]
      const from = performance.now()
      const env = { [variable]: `${silent.url},${api.url}` }
      const { code, stderr } = await headroom(['task', 'list'], { env })
      expect([code, stderr]).toEqual([0, ''])
      expect(silent.asked).toHaveLength(1)
      expect(performance.now() - from).toBeLessThan(25_000)
    },
  )
})

describe('the wait for one of several addresses', () => {
  const path = '/tasks'
  test.each([
    ['a read', { method: 'GET', path }, 1_500],
    ['a submission with its key', { method: 'POST', path, isRepeatable: true, body: {} }, 1_500],
    ['a change that may act twice', { method: 'PATCH', path }, null],
    ['a read that waits for the end of a task', { method: 'GET', path, query: { wait: '20s' } }, null],
    ['an explanation with a new forecast', { method: 'GET', path, query: { forecast: 'wait' } }, null],
    ['a read without its optional parameter', { method: 'GET', path, query: { wait: undefined } }, 1_500],
    ['a chunk of a file', { method: 'PUT', path, isRepeatable: true, body: new Uint8Array(1) }, null],
  ] as const)('of %s', (_what, call, ms) => {
    expect(patienceMs(call)).toBe(ms)
  })

  test('ends with the last error, once every address has been asked and has failed', async () => {
    const fail = new Map<string, (error: Error) => void>()
    const answer = firstAnswer(['a', 'b', 'c'], 1, (url) => {
      return new Promise<never>((_resolve, reject) => void fail.set(url, reject))
    })
    await vi.waitFor(() => expect([...fail.keys()]).toEqual(['a', 'b', 'c']), WAIT)
    for (const [url, reject] of fail) reject(new Error(url))
    await expect(answer).rejects.toThrow('c')
  })
})
