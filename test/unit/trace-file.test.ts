import fc from 'fast-check'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TraceError } from '../../simulator/trace/trace-error.ts'
import { openTrace, type TraceReadOptions } from '../../simulator/trace/trace-file-reader.ts'
import { writeTrace } from '../../simulator/trace/trace-file-writer.ts'
import type { TraceHeader, TraceTask, Work } from '../../simulator/trace/trace-format.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-trace-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const HEADER: TraceHeader = {
  trace: 'test',
  version: 1,
  t_unit: 'ms',
  source: null,
  importer: null,
  rows: 0,
  dropped: {},
}
const TASK: TraceTask = {
  id: 'a',
  at: 0,
  gpus: 1,
  vram_mib: 1000,
  gpu_mode: 'shared',
  priority: 2,
  noswap: 0,
  groups: [],
  owner: null,
  work: { kind: 'duration', ms: 5 },
  alloc: [],
  cancel_at: null,
}
const HEADER_LINE = '{"trace":"test","version":1,"t_unit":"ms"}'
const TASK_LINE = '{"id":"a","at":0,"gpus":1,"vram_mib":1000,"work":{"kind":"duration","ms":5}}'

async function readAll(
  file: string,
  options?: TraceReadOptions,
): Promise<{ header: TraceHeader; tasks: TraceTask[]; sha256: string }> {
  const trace = await openTrace(file, options)
  const tasks: TraceTask[] = []
  for await (const task of trace.tasks()) tasks.push(task)
  return { header: trace.header, tasks, sha256: trace.sha256() }
}

function fileOf(content: string | Uint8Array, name = 'x.trace.jsonl'): string {
  const file = join(folder, name)
  writeFileSync(file, content)
  return file
}

const readText = (...lines: readonly string[]): ReturnType<typeof readAll> =>
  readAll(fileOf([HEADER_LINE, ...lines].join('\n')))

describe('a trace that is written and read', () => {
  const ms = fc.nat({ max: 1_000_000_000 })
  const work: fc.Arbitrary<Work> = fc.oneof(
    fc.record({ kind: fc.constant('duration' as const), ms: fc.integer({ min: 1 }) }),
    fc.record({
      kind: fc.constant('phases' as const),
      phases: fc.array(fc.tuple(fc.integer({ min: 1 }), ms), { minLength: 1 }),
    }),
    fc.record({
      kind: fc.constant('bursts' as const),
      at: fc.array(fc.tuple(ms, fc.integer({ min: 1 }))),
      stayMs: fc.integer({ min: 1 }),
    }),
  )
  const task: fc.Arbitrary<TraceTask> = fc
    .record({
      id: fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' }).filter((id) => id.length <= 256),
      at: ms,
      gpus: fc.integer({ min: 1, max: 1024 }),
      vram_mib: fc.integer({ min: 1, max: 100_000 }),
      gpu_mode: fc.constantFrom('shared' as const, 'exclusive' as const),
      priority: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const, 4 as const),
      noswap: fc.constantFrom(0 as const, 1 as const),
      groups: fc.array(fc.string({ minLength: 1, maxLength: 5 }), { maxLength: 3 }),
      owner: fc.option(fc.string({ minLength: 1, maxLength: 5 })),
      work,
      alloc: fc.constantFrom<TraceTask['alloc']>([], [[0, 10], [7, 2000]]), // prettier-ignore
      cancel_at: fc.option(fc.integer({ min: 1_000_000_001, max: 2_000_000_000 })),
    })
    .map((record) => ({
      ...record,
      work:
        record.work.kind === 'bursts'
          ? { ...record.work, at: [...record.work.at].sort((a, b) => a[0] - b[0]) }
          : record.work,
    }))

  it('is unchanged, with and without gzip, and has the same sha256', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(task, { maxLength: 30 }), async (unordered) => {
        const tasks = unordered.sort((a, b) => a.at - b.at)
        const plain = await writeTrace(join(folder, 'x.trace.jsonl'), HEADER, tasks)
        const zipped = await writeTrace(join(folder, 'x.trace.jsonl.gz'), HEADER, tasks)
        expect(plain).toEqual(zipped)
        expect(await readAll(join(folder, 'x.trace.jsonl'))).toEqual({
          header: HEADER,
          tasks,
          sha256: plain.sha256,
        })
        expect(await readAll(join(folder, 'x.trace.jsonl.gz'))).toEqual({
          header: HEADER,
          tasks,
          sha256: plain.sha256,
        })
        expect(plain.tasks).toBe(tasks.length)
      }),
      { numRuns: 50 },
    )
  })
  it('keeps a complete header', async () => {
    const header: TraceHeader = {
      ...HEADER,
      source: { file: 'pods.csv', sha256: 'ab', licence: 'Apache-2.0', origin: null },
      importer: {
        format: 'openb',
        options: { seed: 1, vram_map: { G2: 1 } },
        synthetic: ['activity'],
        ignored: { cpu: 3 },
        adjusted: {},
      },
      rows: 10,
      dropped: { no_gpu: 2 },
    }
    await writeTrace(join(folder, 'x'), header, [TASK])
    expect((await readAll(join(folder, 'x'))).header).toEqual(header)
  })
  it('is streamed in many blocks, in order', async () => {
    function* many(): Iterable<TraceTask> {
      for (let i = 0; i < 40_000; i++) yield { ...TASK, id: `täsk-${i}`, at: i }
    }
    const file = join(folder, 'many.trace.jsonl.gz')
    await writeTrace(file, HEADER, many())
    const trace = await openTrace(file)
    let next = 0
    let batches = 0
    for await (const batch of trace.batches()) {
      batches++
      for (const task of batch) {
        if (task.at !== next || task.id !== `täsk-${next}`)
          expect.fail(`task ${task.id} stands in place ${next}`)
        next++
      }
    }
    expect(next).toBe(40_000)
    expect(batches).toBeGreaterThan(1)
  })
  it('has no sha256 before it was read to its end', async () => {
    const trace = await openTrace(fileOf(`${HEADER_LINE}\n${TASK_LINE}\n`))
    expect(() => trace.sha256()).toThrow('not read to its end')
    trace.close()
  })
})

describe('writing a trace', () => {
  it('leaves the previous file and no other file on failure', async () => {
    const file = fileOf('old')
    function* failing(): Iterable<TraceTask> {
      yield TASK
      throw new Error('source is gone')
    }
    await expect(writeTrace(file, HEADER, failing())).rejects.toThrow('source is gone')
    expect(readFileSync(file, 'utf8')).toBe('old')
    expect(readdirSync(folder)).toEqual(['x.trace.jsonl'])
  })
  it('refuses tasks that are not in order of arrival', async () => {
    await expect(writeTrace(join(folder, 'x'), HEADER, [{ ...TASK, at: 5 }, TASK])).rejects.toThrow(
      'arrives at 0, before 5',
    )
  })
  it('accepts an asynchronous source, and compresses a file by its name', async () => {
    async function* source(): AsyncIterable<TraceTask> {
      yield await Promise.resolve(TASK)
    }
    await writeTrace(join(folder, 'x.gz'), HEADER, source())
    expect(
      gunzipSync(readFileSync(join(folder, 'x.gz')))
        .toString()
        .split('\n'),
    ).toHaveLength(3)
  })
  it('names a missing folder', async () => {
    await expect(writeTrace(join(folder, 'nowhere', 'x'), HEADER, [])).rejects.toThrow('ENOENT')
  })
})

describe('reading a trace accepts', () => {
  it('missing optional fields, with their defaults', async () => {
    expect((await readText(TASK_LINE)).tasks).toEqual([TASK])
  })
  it('an exclusive task without VRAM', async () => {
    const { tasks } = await readText(
      '{"id":"a","at":0,"gpus":8,"gpu_mode":"exclusive","work":{"kind":"duration","ms":5}}',
    )
    expect(tasks[0]).toMatchObject({ gpu_mode: 'exclusive', vram_mib: 0, gpus: 8 })
  })
  it('CRLF, a byte order mark, blank lines and a last line without a line end', async () => {
    const { tasks } = await readAll(
      fileOf(`\u{feff}${HEADER_LINE}\r\n\r\n${TASK_LINE}\r\n  \r\n${TASK_LINE.replace('"a"', '"b"')}`),
    )
    expect(tasks.map((task) => task.id)).toEqual(['a', 'b'])
  })
  it('a header alone', async () => {
    expect((await readAll(fileOf(HEADER_LINE))).tasks).toEqual([])
  })
  it('gzip, whatever the file name', async () => {
    expect((await readAll(fileOf(gzipSync(`${HEADER_LINE}\n${TASK_LINE}\n`), 'x.jsonl'))).tasks).toEqual([
      TASK,
    ])
  })
  it('any order on request', async () => {
    const file = fileOf([HEADER_LINE, TASK_LINE.replace('"at":0', '"at":9'), TASK_LINE].join('\n'))
    expect((await readAll(file, { order: 'any' })).tasks.map((task) => task.at)).toEqual([9, 0])
    await expect(readAll(file)).rejects.toThrow(`${file}:3: at: falls from 9 to 0`)
  })
})

describe('reading a trace refuses, naming file, line and field:', () => {
  const task = (patch: object): string => JSON.stringify({ ...JSON.parse(TASK_LINE), ...patch })
  const cases: ReadonlyArray<readonly [what: string, line: string, message: string]> = [
    ['a line that is no JSON', '{"id":', ': is not JSON'],
    ['a line that is not an object', '[1]', ': must be a JSON object'],
    ['two objects in a line', `${TASK_LINE}${TASK_LINE}`, ': is not JSON'],
    ['NaN', TASK_LINE.replace('1000', 'NaN'), ': is not JSON'],
    ['an unknown key', task({ vram: 1 }), 'vram: is not a known key (id, at, gpus'],
    ['a prototype key', `{"__proto__":{},${TASK_LINE.slice(1)}`, '__proto__: is not a known key'],
    ['no id', task({ id: undefined }), 'id: is missing'],
    ['an empty id', task({ id: '' }), 'id: must be 1 to 256 characters, is ""'],
    ['an id of 257 characters', task({ id: 'x'.repeat(257) }), 'id: must be 1 to 256 characters, is "xxx'],
    ['a number as id', task({ id: 5 }), 'id: must be 1 to 256 characters, is 5'],
    ['no arrival', task({ at: undefined }), 'at: is missing'],
    ['a negative arrival', task({ at: -1 }), 'at: must be a whole number of 0 or more, is -1'],
    ['a broken arrival', task({ at: 1.5 }), 'at: must be a whole number of 0 or more, is 1.5'],
    ['an arrival beyond counting', TASK_LINE.replace('"at":0', '"at":1e300'), 'at: must be a whole number'],
    ['no GPUs', task({ gpus: 0 }), 'gpus: must be a whole number from 1 to 1024, is 0'],
    ['GPUs as text', task({ gpus: '2' }), 'gpus: must be a whole number from 1 to 1024, is "2"'],
    ['a shared task without VRAM', task({ vram_mib: undefined }), 'vram_mib: is missing'],
    ['a shared task with 0 VRAM', task({ vram_mib: 0 }), 'vram_mib: must be a whole number from 1 to'],
    ['an unknown GPU mode', task({ gpu_mode: 'mig' }), 'gpu_mode: must be "shared" or "exclusive", is "mig"'],
    ['priority 5', task({ priority: 5 }), 'priority: must be a whole number from 0 to 4, is 5'],
    ['noswap true', task({ noswap: true }), 'noswap: must be a whole number from 0 to 1, is true'],
    ['groups as text', task({ groups: 'a' }), 'groups: must be a list of names, is "a"'],
    ['a group without a name', task({ groups: ['a', ''] }), 'groups[1]: must be 1 to 256 characters'],
    ['too many groups', task({ groups: Array(65).fill('g') }), 'groups: has 65 names, more than 64'],
    ['an owner that is not a text', task({ owner: 1 }), 'owner: must be 1 to 256 characters, is 1'],
    ['no work', task({ work: undefined }), 'work: is missing'],
    ['work as a number', task({ work: 5 }), 'work: must be an object, is 5'],
    [
      'work of an unknown kind',
      task({ work: { kind: 'steps' } }),
      'work.kind: must be "duration", "phases" or "bursts", is "steps"',
    ],
    [
      'a duration of 0',
      task({ work: { kind: 'duration', ms: 0 } }),
      'work.ms: must be a whole number of 1 or more, is 0',
    ],
    [
      'keys of another kind',
      task({ work: { kind: 'duration', ms: 1, phases: [] } }),
      'work.phases: is not a known key (kind, ms)',
    ],
    ['no phases', task({ work: { kind: 'phases' } }), 'work.phases: is missing'],
    [
      'phases that last nothing',
      task({ work: { kind: 'phases', phases: [[0, 0]] } }),
      'work.phases: must last 1 ms or longer',
    ],
    [
      'phases that are not pairs',
      task({ work: { kind: 'phases', phases: [[1, 2, 3]] } }),
      'work.phases[0]: must be a pair of numbers, is [1,2,3]',
    ],
    // prettier-ignore
    ['a negative phase', task({ work: { kind: 'phases', phases: [[1, 2], [1, -2]] } }),
      'work.phases[1][1]: must be a whole number of 0'],
    [
      'a null in a phase',
      task({ work: { kind: 'phases', phases: [[null, 2]] } }),
      'work.phases[0][0]: must be a whole number of 0',
    ],
    [
      'phases beyond counting',
      task({ work: { kind: 'phases', phases: [[9e15, 9e15]] } }),
      'work.phases: last longer than',
    ],
    ['bursts without a stay', task({ work: { kind: 'bursts', at: [[0, 1]] } }), 'work.stayMs: is missing'],
    [
      'bursts of nothing',
      task({ work: { kind: 'bursts', at: [], stayMs: 0 } }),
      'work.stayMs: must be a whole number of 1 or more',
    ],
    [
      'a burst without work',
      task({ work: { kind: 'bursts', at: [[5, 0]], stayMs: 0 } }),
      'work.at[0][1]: must be a whole number of 1',
    ],
    // prettier-ignore
    ['bursts that go back', task({ work: { kind: 'bursts', at: [[5, 1], [4, 1]], stayMs: 0 } }),
      'work.at[1][0]: falls from 5 to 4'],
    // prettier-ignore
    ['growth that goes back in time', task({ alloc: [[5, 1], [5, 2]] }),
      'alloc[1][0]: must be above 5, is 5'],
    // prettier-ignore
    ['growth that shrinks', task({ alloc: [[5, 9], [6, 8]] }), 'alloc[1][1]: must be above 9, is 8'],
    ['growth beyond any GPU', task({ alloc: [[5, 99_999_999]] }), 'alloc: must stay at or below'],
    ['growth as an object', task({ alloc: {} }), 'alloc: must be a list of pairs, is {}'],
    [
      'a cancellation before the arrival',
      task({ at: 9, cancel_at: 8 }),
      'cancel_at: must be a whole number of 9 or more, is 8',
    ],
  ]
  it.each(cases)('%s', async (_what, line, message) => {
    const error = await readText(TASK_LINE, line, TASK_LINE).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(TraceError)
    expect((error as TraceError).message).toContain(`x.trace.jsonl:3: ${message.replace(/^: /, '')}`)
    expect((error as TraceError).line).toBe(3)
  })

  const headers: ReadonlyArray<readonly [what: string, line: string, message: string]> = [
    ['an empty file', '', '1: is empty: a trace begins with a header line'],
    ['a task in place of the header', TASK_LINE, '1: trace: is missing: a trace begins with a header line'],
    ['another version', HEADER_LINE.replace('"version":1', '"version":2'), '1: version: must be 1, is 2'],
    ['another unit of time', HEADER_LINE.replace('"ms"', '"s"'), '1: t_unit: must be "ms", is "s"'],
    ['an unknown key', HEADER_LINE.replace('{', '{"tasks":1,'), '1: tasks: is not a known key'],
    [
      'an unknown key of the source',
      HEADER_LINE.replace('{', '{"source":{"file":"a","sha256":"b","url":"c"},'),
      '1: source.url: is not',
    ],
    [
      'an invalid count',
      HEADER_LINE.replace('{', '{"dropped":{"no_gpu":-1},'),
      '1: dropped.no_gpu: must be a whole number',
    ],
    [
      'synthetic fields that are not a list',
      HEADER_LINE.replace('{', '{"importer":{"format":"a","synthetic":1},'),
      '1: importer.synthetic: must be',
    ],
  ]
  it.each(headers)('%s in the header', async (_what, line, message) => {
    await expect(readAll(fileOf(line))).rejects.toThrow(`x.trace.jsonl:${message}`)
  })

  it('a missing file, a folder, broken gzip and text that is not UTF-8', async () => {
    await expect(openTrace(join(folder, 'none'))).rejects.toThrow('none: no such file')
    await expect(openTrace(folder)).rejects.toThrow('is a folder')
    const zipped = gzipSync(`${HEADER_LINE}\n${`${TASK_LINE}\n`.repeat(1000)}`)
    await expect(readAll(fileOf(zipped.subarray(0, zipped.length - 20)))).rejects.toThrow(
      'is broken or cut off gzip',
    )
    await expect(
      readAll(fileOf(Buffer.concat([Buffer.from(`${HEADER_LINE}\n`), Buffer.from([0xff, 0xfe])]))),
    ).rejects.toThrow('not UTF-8')
  })
  it('a line of more than 64 MiB, without keeping more of it in memory', async () => {
    await expect(readAll(fileOf(gzipSync(Buffer.alloc(80_000_000, 0x20)), 'long.gz'))).rejects.toThrow(
      'long.gz:1: is longer than 67108864 bytes',
    )
  })
})
