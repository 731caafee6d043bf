/** What a proxy passes to an inference engine: requests for serving that can be read in one way only. */
import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { guardWorld, until, type GuardWorld } from '../support/guard-world.ts'
import { LISTEN, proxied, serving, type ProxiedTask } from '../support/proxied-task.ts'

/** Logs each request that its reader of HTTP finds, and answers with method, target and size of the body. */
const ENGINE =
  'const s = require("http").createServer({ insecureHTTPParser: true }, (q, a) => { ' +
  'let b = ""; console.log("saw " + q.method + " " + q.url); q.on("data", (d) => { b += d }); ' +
  'q.on("end", () => a.end(q.method + " " + q.url + " " + b.length + "\\n")) }); ' +
  `s.keepAliveTimeout = 60000; ${LISTEN}`

let world: GuardWorld
let proxy: ProxiedTask
beforeAll(async () => {
  world = await guardWorld()
  proxy = await proxied(world, 'engine', await serving(world, 'engine', ENGINE), { protocol: 'engine' })
})

const GOOD = 'GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n'

/** Names a request that tells only that the proxy and the engine are not behind. */
const CANARY = 'canary'

async function answeredElsewhere(): Promise<void> {
  const other = await proxy.client()
  other.socket.write(`GET /v1/models?${CANARY} HTTP/1.1\r\nHost: a\r\n\r\n`)
  await until('a request on another connection is answered', () => other.text.includes(CANARY))
  other.socket.destroy()
}

/**
 * Sends bytes in pieces of this size; resolves with what returns until it is over, or silent while
 * requests on other connections are answered.
 */
async function exchange(bytes: string, piece = bytes.length): Promise<string> {
  const client = await proxy.client()
  const all = Buffer.from(bytes, 'latin1')
  for (let at = 0; at < all.length && !client.isClosed; at += piece) {
    client.socket.write(all.subarray(at, at + piece))
    if (piece < all.length) await delay(1)
  }
  for (let seen = -1; seen !== client.size && !client.isEnded && !client.isClosed;) {
    seen = client.size
    await delay(150)
    await answeredElsewhere()
  }
  client.socket.destroy()
  return client.text
}

async function seen(): Promise<readonly string[]> {
  return (await world.output('engine'))
    .split('\n')
    .filter((line) => line.startsWith('saw ') && !line.includes(CANARY))
}

describe('requests that are passed on', () => {
  it('arrive unchanged, one after the other on one connection, however they are cut', async () => {
    const body = 'x'.repeat(70_000)
    const chunked = 'POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
    const stream =
      GOOD +
      `POST /v1/chat/completions?x=1 HTTP/1.1\r\nhost:a\r\ncontent-length: \t${body.length} \r\n\r\n${body}` +
      `${chunked}5\r\nhello\r\n1F\r\n${'y'.repeat(31)}\r\n0\r\n\r\n` +
      'GET /health HTTP/1.1\r\nHost: a\r\n\r\n'
    for (const piece of [stream.length, 20_000, 777]) {
      const answer = await exchange(stream, piece)
      expect(answer.match(/^\w+ \/\S+ \d+$/gm)).toEqual([
        'GET /v1/models 0',
        'POST /v1/chat/completions?x=1 70000',
        'POST /v1/completions 36',
        'GET /health 0',
      ])
    }
    const small = GOOD + `${chunked}5\r\nhello\r\n0\r\n\r\n` + GOOD
    expect((await exchange(small, 1)).match(/^\w+ \/\S+ \d+$/gm)).toHaveLength(3)
  })

  it.each([
    '/v1/models/org%2Fname',
    '/v1/embeddings',
    '/v2/rerank',
    '/inference/v1/generate',
    '/generate',
    '/metrics',
    '/tokenize?model=sleep',
    '/v1/models/sleepy',
    '/v1/x?next=/../sleep',
  ])('may have the path %s', async (path) => {
    expect(await exchange(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)).toContain(`GET ${path} 0\n`)
  })

  it('come from ordinary clients with large bodies', async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const options = { port: proxy.port, path: '/v1/audio/transcriptions', method: 'POST' }
      const asked = request(options, (reply) => {
        let text = ''
        reply.on('data', (part: Buffer) => (text += part.toString()))
        reply.on('end', () => resolve(text))
      })
      asked.on('error', reject)
      for (let i = 0; i < 100; i++) asked.write('z'.repeat(30_000))
      asked.end()
    })
    expect(answer).toBe('POST /v1/audio/transcriptions 3000000\n')
  })
})

describe('requests that are not passed on', () => {
  it.each([
    '/sleep',
    '/sleep?level=1',
    '/SLEEP',
    '/sleep/',
    '/%73leep',
    '/%2573leep',
    '/v1/%2573leep',
    '/v1/sleep',
    '/v1/../sleep',
    '/v1/..;/sleep',
    '/v1/%2e%2e/sleep',
    '/v1//sleep',
    '/./sleep',
    '/v1/x/..%2f..%2fsleep',
    '/v1/\\..\\sleep',
    '/sleep;x',
    '/sleep#x',
    '/wake_up',
    '/is_sleeping',
    '/release_memory_occupation',
    '/resume_memory_occupation',
    '/flush_cache',
    '/collective_rpc',
    '/update_weights_from_disk',
    '/get_server_info',
    '/v1/load_lora_adapter',
    '/pause?mode=abort',
    '/weight_checker',
    '/',
    '/docs',
    '/v1',
    '/health/',
    '/health%00',
    '*',
    'sleep',
    'http://a/sleep',
    'http://a/v1/models',
    '//v1/models',
  ])('because of the target %s', async (target) => {
    const before = await seen()
    for (const method of ['POST', 'GET'])
      expect(await exchange(`${method} ${target} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`)).toMatch(
        /^HTTP\/1\.1 40[03] .*\r\nConnection: close\r\n\r\nThis request is not/s,
      )
    expect(await seen()).toEqual(before)
  })

  const P = 'POST /v1/completions HTTP/1.1\r\nHost: a\r\n'
  const HIDDEN = 'POST /sleep HTTP/1.1\r\nHost: a\r\n\r\n'
  it.each([
    ['two lengths', `${P}Content-Length: 5\r\nContent-Length: 0\r\n\r\n${HIDDEN}`],
    ['two equal lengths', `${P}Content-Length: 0\r\ncontent-length: 0\r\n\r\n${HIDDEN}`],
    ['a length and chunks', `${P}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ['chunks and a length', `${P}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ['another coding', `${P}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ['an unknown coding', `${P}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ['two codings', `${P}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ['a blank before the colon', `${P}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ['a folded line', `${P}X: a\r\n Content-Length: 9\r\n\r\n${HIDDEN}`],
    ['a line that ends with LF', `${P}X: a\nContent-Length: 9\r\n\r\n${HIDDEN}`],
    ['a head that ends with LF', `GET /v1/models HTTP/1.1\nHost: a\n\n${HIDDEN}`],
    ['a CR within a line', `${P}X: a\rContent-Length: 9\r\n\r\n${HIDDEN}`],
    ['a NUL', `${P}X: a\0b\r\n\r\n${HIDDEN}`],
    ['a length with a sign', `${P}Content-Length: +0\r\n\r\n${HIDDEN}`],
    ['a length with a blank', `${P}Content-Length: 0 0\r\n\r\n${HIDDEN}`],
    ['an empty length', `${P}Content-Length:\r\n\r\n${HIDDEN}`],
    ['a hexadecimal length', `${P}Content-Length: 0x5\r\n\r\n${HIDDEN}`],
    ['a huge length', `${P}Content-Length: 99999999999999999999\r\n\r\n${HIDDEN}`],
    ['a field without a colon', `${P}Content-Length\r\n\r\n${HIDDEN}`],
    ['a field without a name', `${P}: x\r\n\r\n${HIDDEN}`],
    ['chunks in HTTP/1.0', `POST /v1/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ['HTTP/0.9', `GET /v1/models\r\n\r\n${HIDDEN}`],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['two blanks in the first line', `GET  /v1/models HTTP/1.1\r\n\r\n${HIDDEN}`],
    ['an empty first line', `\r\n${HIDDEN}`],
    ['another protocol', `${P}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n${HIDDEN}`],
    ['a tunnel', `CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n${HIDDEN}`],
    ['too large a head', `${P}X: ${'x'.repeat(40_000)}\r\n\r\n${HIDDEN}`],
  ])('because of %s', async (_, bytes) => {
    const before = await seen()
    expect(await exchange(bytes)).toMatch(
      /^HTTP\/1\.1 (400|403|431|501) .*This request is not passed to the task/s,
    )
    expect(await seen()).toEqual(before)
  })

  it.each([
    ['an administrative path', HIDDEN],
    ['the body of a request that is shorter', `${P}Content-Length: 3\r\n\r\nabcd${HIDDEN}`],
    ['a chunk with an extension', `${P}Transfer-Encoding: chunked\r\n\r\n1;x\r\na\r\n0\r\n\r\n${HIDDEN}`],
    [
      'a chunk that is longer than it says',
      `${P}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n${HIDDEN}`,
    ],
    ['a chunk whose size ends with LF', `${P}Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n${HIDDEN}`],
    [
      'a chunk with a huge size',
      `${P}Transfer-Encoding: chunked\r\n\r\nfffffffff\r\na\r\n0\r\n\r\n${HIDDEN}`,
    ],
    ['a trailer', `${P}Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n${HIDDEN}`],
    ['a body that ends early', `${P}Transfer-Encoding: chunked\r\n\r\n0\r\n${HIDDEN}`],
  ])('after others on the same connection, which ends: %s', async (_, bytes) => {
    const { forbidden } = await proxy.counts()
    const answer = await exchange(GOOD + bytes)
    expect(answer).toContain('GET /v1/models 0')
    expect(answer).not.toContain('sleep')
    expect((await proxy.counts()).forbidden).toBe(forbidden + 1)
    expect((await seen()).filter((line) => /^saw \S+ [^?]*\/sleep\b/.test(line))).toEqual([])
  })

  it('are never those of random streams that lead to an administrative path', async () => {
    const parts = [
      ...[
        'GET ',
        'POST ',
        '/v1/models',
        '/sleep',
        '/v1/../sleep',
        ' HTTP/1.1',
        ' HTTP/1.0',
        '\r\n',
        '\n',
        '\r',
        ' ',
      ],
      ...[
        '\r\n\r\n',
        'Content-Length: 5',
        'Content-Length: 0',
        'Transfer-Encoding: chunked',
        'Host: a',
        ':',
        '\t',
      ],
      ...[
        '0\r\n\r\n',
        '5\r\nhello\r\n',
        'hello',
        '\0',
        'Upgrade: x',
        'Expect: 100-continue',
        GOOD,
        HIDDEN,
        P,
      ],
    ]
    const random = seeded(1)
    const cases = Number(process.env['PROXY_FUZZ_CASES'] ?? 300)
    for (let i = 0; i < cases; i += 50) {
      const streams = Array.from({ length: 50 }, () =>
        Array.from({ length: 2 + random(12) }, () => parts[random(parts.length)]).join(''),
      )
      await Promise.all(streams.map((stream) => exchange(random(2) === 0 ? stream : GOOD + stream)))
    }
    expect((await seen()).filter((line) => /^saw \S+ [^?]*\/sleep\b/.test(line))).toEqual([])
  })
})

it('Requests to an engine wait while it is out, and are read after its return', async () => {
  await proxy.link.ask('hold')
  const good = await proxy.client()
  good.socket.write(GOOD)
  const bad = await proxy.client()
  bad.socket.write('GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n')
  await expect.poll(async () => (await proxy.counts()).held).toBe(2)
  expect(proxy.events).toContain('event wanted')
  await proxy.link.ask('pass')
  await until('one is answered', () => good.text.includes('GET /v1/models 0'))
  await until('one is refused', () => bad.text.includes('403 Forbidden'))
  good.socket.destroy()
})

it('Requests on open connections are all answered, however often the engine leaves and returns', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 })
  const body = 'x'.repeat(30_000)
  const ask = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const asked = request({ agent, port: proxy.port, path: '/v1/completions', method: 'POST' }, (reply) => {
        let text = ''
        reply.on('data', (part: Buffer) => (text += part.toString()))
        reply.on('end', () => resolve(text))
      })
      asked.on('error', reject)
      asked.end(body)
    })
  let left = 20
  const answers = Array.from({ length: 20 }, async () => {
    const mine: string[] = []
    for (let i = 0; i < 20; i++) mine.push(await ask())
    left -= 1
    return mine
  })
  for (let swaps = 0; left > 0; swaps++) {
    await proxy.link.ask(swaps % 2 === 0 ? 'hold' : 'pass')
    await delay(swaps % 2 === 0 ? 5 : 15)
  }
  expect(new Set((await Promise.all(answers)).flat())).toEqual(new Set(['POST /v1/completions 30000\n']))
  await proxy.link.ask('pass')
  agent.destroy()
})

/** A generator of whole numbers below a limit (mulberry32). */
function seeded(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
}
