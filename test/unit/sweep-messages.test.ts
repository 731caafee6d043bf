/** A worker checks each received message against an allow-list before use. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TraceCache } from '../../services/sweep/nats/trace-cache.ts'
import { getBlob } from '../../services/sweep/nats/blobs.ts'
import type { JetStream } from '../../services/sweep/nats/jetstream.ts'
import {
  FORMAT,
  MAX_JOB_BYTES,
  readJob,
  readPoint,
  readResult,
} from '../../services/sweep/nats/sweep-messages.ts'
import { sha256 } from '../../services/sweep/run-store.ts'

const HASH = 'a'.repeat(64)
const BLOB = { sha256: HASH, bytes: 10, chunks: 1 }
const JOB = {
  ...{
    format: FORMAT,
    version: '0.1.0',
    commit: null,
    sweep: '0123456789abcdef01234567',
    run: '80-s3-1f9c04ab',
  },
  ...{ overcommit_percent: 80, seed: 3, point: BLOB, files: 'all', silent_ms: 1_000 },
}
const POINT = {
  text: 'x',
  file: 'a.yaml',
  base_dir: '/a',
  settings: {},
  identity: {},
  traces: { 't.trace.jsonl': { ...BLOB, suffix: '' } },
}
const DONE = {
  format: FORMAT,
  run: '0-s1',
  kind: 'done',
  result: {},
  timing: {},
  operator_faults: [],
  files: { 'tasks.csv': BLOB },
}

const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

describe('A message', () => {
  it.each([
    ['x', 'not JSON'],
    ['', 'not JSON'],
    ['null', 'not an object'],
    ['[]', 'not an object'],
    ['7', 'not an object'],
    ['"a"', 'not an object'],
    [`{"a":"${'b'.repeat(MAX_JOB_BYTES)}"}`, `${MAX_JOB_BYTES + 8} bytes; the limit is ${MAX_JOB_BYTES}`],
  ])('%.20s is not a valid job', (text, why) => {
    expect(readJob(Buffer.from(text))).toEqual({ ok: false, why })
  })

  it('that is not UTF-8 is not a valid job', () => {
    expect(readJob(Buffer.from([0xff, 0xfe, 0x7b, 0x7d]))).toEqual({ ok: false, why: 'not JSON' })
  })

  it('is accepted as it is sent', () => {
    expect(readJob(bytesOf(JOB))).toEqual({ ok: true, value: JOB })
    expect(readPoint(bytesOf(POINT))).toEqual({ ok: true, value: POINT })
    expect(readResult(bytesOf(DONE))).toEqual({ ok: true, value: DONE })
    expect(
      readResult(bytesOf({ format: FORMAT, run: '0-s1', kind: 'failed', name: 'Error', message: 'x' })).ok,
    ).toBe(true)
  })

  it.each<[string, object]>([
    ['sweep', { sweep: '../../etc' }],
    ['sweep', { sweep: 'a.b' }],
    ['sweep', { sweep: '' }],
    ['sweep', { sweep: 'a'.repeat(65) }],
    ['run', { run: '/tmp/x' }],
    ['run', { run: '..' }],
    ['run', { run: 'a\n' }],
    ['run', { run: 7 }],
    ['version', { version: 'x\u001b[2J' }],
    ['commit', { commit: 'not hex' }],
    ['format', { format: 'x' }],
    ['overcommit_percent', { overcommit_percent: -1 }],
    ['overcommit_percent', { overcommit_percent: '80' }],
    ['seed', { seed: 1.5 }],
    ['point', { point: null }],
    ['point/sha256', { point: { ...BLOB, sha256: '../x' } }],
    ['point/bytes', { point: { ...BLOB, bytes: 5 * 1024 * 1024 } }],
    ['point/bytes', { point: { ...BLOB, bytes: -1 } }],
    ['point/chunks', { point: { ...BLOB, chunks: 1e9 } }],
    ['point/chunks', { point: { ...BLOB, chunks: 0 } }],
    ['files', { files: 'everything' }],
    ['silent_ms', { silent_ms: 0 }],
    ['silent_ms', { silent_ms: 1e12 }],
  ])('with another %s is not a valid job: %j', (member, changes) => {
    expect(readJob(bytesOf({ ...JOB, ...changes }))).toEqual({
      ok: false,
      why: `member ${member} is missing or out of bounds`,
    })
  })

  it.each<[string, object]>([
    ['traces/suffix', { traces: { a: { ...BLOB, suffix: '/../../../../tmp/PWNED' } } }],
    ['traces/suffix', { traces: { a: BLOB } }],
    ['traces/bytes', { traces: { a: { ...BLOB, bytes: 2 ** 31, suffix: '' } } }],
    ['traces/sha256', { traces: { a: { ...BLOB, sha256: `${HASH}/..`, suffix: '' } } }],
    [
      'traces',
      {
        traces: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`t${i}`, { ...BLOB, suffix: '' }])),
      },
    ],
    ['settings', { settings: { '__proto__.x': 1 } }],
    ['settings', { settings: { 'config.safety_reserve_mib': {} } }],
    ['text', { text: 'x'.repeat(1024 * 1024 + 1) }],
  ])('with another %s is not a valid scenario of a sweep', (member, changes) => {
    expect(readPoint(bytesOf({ ...POINT, ...changes }))).toEqual({
      ok: false,
      why: `member ${member} is missing or out of bounds`,
    })
  })

  it.each<[string, object]>([
    ['files', { files: { '../../.ssh/authorized_keys': BLOB } }],
    ['files/tasks.csv/bytes', { files: { 'tasks.csv': { ...BLOB, bytes: 2 ** 40 } } }],
    ['kind', { kind: 'other' }],
    ['run', { run: 'a/b' }],
  ])('with another %s is not a valid result', (member, changes) => {
    expect(readResult(bytesOf({ ...DONE, ...changes }))).toEqual({
      ok: false,
      why: `member ${member} is missing or out of bounds`,
    })
  })
})

describe('Content from the broker', () => {
  const streamOf = (...chunks: Buffer[]): JetStream => {
    const last = (_: string, subject: string): Promise<Uint8Array | null> =>
      Promise.resolve(chunks[Number(subject.split('.').at(-1))] ?? null)
    return { last } as JetStream
  }
  const bomb = gzipSync(Buffer.alloc(50_000_000))

  it('that unpacks to more than its announced size is refused before it is unpacked', async () => {
    const ref = { sha256: HASH, bytes: 1_000_000, chunks: 1 }
    await expect(getBlob(streamOf(bomb), 's', 'blob', ref)).rejects.toThrow(
      /larger than the announced 1000000 bytes/,
    )
  })

  it('with more chunks than announced is refused while it is read', async () => {
    const ref = { sha256: HASH, bytes: 10, chunks: 3 }
    await expect(getBlob(streamOf(bomb, bomb, bomb), 's', 'blob', ref)).rejects.toThrow(
      /larger than the announced 10 bytes/,
    )
  })

  it('that is shorter than announced, or not gzip, is refused', async () => {
    const short = gzipSync('abc')
    await expect(
      getBlob(streamOf(short), 's', 'blob', { sha256: sha256('abc'), bytes: 4, chunks: 1 }),
    ).rejects.toThrow(/damaged in transit/)
    await expect(
      getBlob(streamOf(Buffer.from('abc')), 's', 'blob', { sha256: sha256('abc'), bytes: 3, chunks: 1 }),
    ).rejects.toThrow(/unpacked/)
  })
})

describe('Traces on a worker', () => {
  let folder: string
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'headroom-shelf-'))))
  afterEach(() => rmSync(folder, { recursive: true }))
  const ref = (hash: string, suffix: '' | '.gz' = '') => ({
    sha256: hash.repeat(64),
    bytes: 4,
    chunks: 1,
    suffix,
  })
  const fetch = () => Promise.resolve(Buffer.from('1234'))

  it('are fetched once, have a number as name, and are removed when unused', async () => {
    const shelf = new TraceCache(folder, 8)
    let fetched = 0
    const counted = () => ((fetched += 1), fetch())
    const [first, same] = await Promise.all([shelf.hold(ref('a'), counted), shelf.hold(ref('a'), counted)])
    expect([first.path, same.path, fetched]).toEqual([
      join(folder, '1.trace.jsonl'),
      join(folder, '1.trace.jsonl'),
      1,
    ])
    const other = await shelf.hold(ref('b', '.gz'), fetch)
    expect(other.path).toBe(join(folder, '2.trace.jsonl.gz'))
    other.release()
    const third = await shelf.hold(ref('c'), fetch)
    expect(new Set(readdirSync(folder))).toEqual(new Set(['1.trace.jsonl', '3.trace.jsonl']))
    for (const each of [first, same, third]) each.release()
    await shelf.hold(ref('d'), fetch)
    expect(new Set(readdirSync(folder))).toEqual(new Set(['3.trace.jsonl', '4.trace.jsonl']))
  })

  it('can be fetched again after a failure', async () => {
    const shelf = new TraceCache(folder)
    await expect(shelf.hold(ref('a'), () => Promise.reject(new Error('away')))).rejects.toThrow('away')
    expect((await shelf.hold(ref('a'), fetch)).path).toBe(join(folder, '1.trace.jsonl'))
  })
})
