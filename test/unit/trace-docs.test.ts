/** docs/trace-format.md and the JSON Schema of a trace agree with the code. */
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { formatHeader, parseHeader } from '../../simulator/trace/header-line.ts'
import { formatTask, parseTask } from '../../simulator/trace/task-line.ts'
import { traceLineJsonSchema } from '../../simulator/trace/trace-schema.ts'
import {
  HOW_TO_MAKE,
  TRACE_DOCS,
  TRACE_SCHEMA_FILE,
  traceSchemaText,
  withMadeParts,
} from '../../tools/reference/trace-reference.ts'

const isLine = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(traceLineJsonSchema())
const outOfDate = `out of date: run \`${HOW_TO_MAKE}\``

describe('files generated from the code', () => {
  it('docs/trace-format.md is up to date with fields and formats', () => {
    const page = readFileSync(TRACE_DOCS, 'utf8')
    expect(page === withMadeParts(page), outOfDate).toBe(true)
  })
  it('scenarios/trace.schema.json is up to date', () => {
    expect(readFileSync(TRACE_SCHEMA_FILE, 'utf8') === traceSchemaText(), outOfDate).toBe(true)
  })
})

const TASK = { id: 'a', at: 0, gpus: 1, vram_mib: 100, work: { kind: 'duration', ms: 5 } }
const HEADER = { trace: 'x', version: 1, t_unit: 'ms' }

function isRead(parse: (text: string) => unknown, line: object): boolean {
  try {
    parse(JSON.stringify(line))
    return true
  } catch {
    return false
  }
}

describe('the schema and the reader of traces', () => {
  it('accept the same tasks, field by field', () => {
    const values: ReadonlyArray<readonly [field: string, values: readonly unknown[]]> = [
      ['id', ['b', '', 'x'.repeat(256), 'x'.repeat(257), 5, null]],
      ['at', [0, 7, -1, 1.5, '1', 2 ** 60]],
      ['gpus', [1, 1024, 0, 1025]],
      ['vram_mib', [1, 16_777_216, 16_777_217, 1.5]],
      ['gpu_mode', ['shared', 'exclusive', 'mine']],
      ['priority', [0, 4, 5, 'P0']],
      ['noswap', [0, 1, 2, true]],
      ['groups', [[], ['g'], [''], 'g', Array.from({ length: 65 }, (_, i) => `g${i}`)]],
      ['owner', [null, 'ada', '', 7]],
      ['alloc', [[], [[0, 5]], [[0]], [[0, 0]], [[1, 2, 3]], 5]],
      ['cancel_at', [null, 0, -1]],
      ['work', [{ kind: 'duration', ms: 0 }, { kind: 'duration', ms: 5, more: 1 },
        { kind: 'phases', phases: [[0, 5]] }, { kind: 'phases', phases: [[-1, 5]] },
        { kind: 'bursts', at: [[0, 1]], stayMs: 0 }, { kind: 'bursts', at: [[0, 0]], stayMs: 5 },
        { kind: 'bursts', at: [[0, 1]] }, { kind: 'naps' }, {}]],
      ['colour', ['red']],
    ] // prettier-ignore
    for (const [field, some] of values) {
      for (const value of some) {
        const line = { ...TASK, [field]: value }
        expect([field, value, isLine(line)]).toEqual([field, value, isRead(parseTask, line)])
      }
    }
    for (const field of Object.keys(TASK).filter((name) => name !== 'vram_mib')) {
      const { [field as 'id']: _, ...line } = TASK
      expect([field, isLine(line), isRead(parseTask, line)]).toEqual([field, false, false])
    }
  })
  it('accept the same headers, field by field', () => {
    const source = { file: 'f', sha256: '00', licence: null, origin: null }
    const importer = {
      format: 'csv',
      options: { seed: 0 },
      synthetic: ['activity'],
      ignored: { cpu: 1 },
      adjusted: {},
    }
    const values: ReadonlyArray<readonly [field: string, values: readonly unknown[]]> = [
      ['trace', ['x', '', 5]],
      ['version', [1, 2, '1']],
      ['t_unit', ['ms', 's']],
      ['source', [null, source, { ...source, more: 1 }, { file: 'f' }, 'f']],
      [
        'importer',
        [null, importer, { ...importer, synthetic: 'activity' }, { ...importer, ignored: { cpu: -1 } }, {}],
      ],
      ['rows', [0, 5, -1]],
      ['dropped', [{}, { no_gpu: 3 }, { no_gpu: 0.5 }, []]],
      ['tasks', [5]],
    ]
    for (const [field, some] of values) {
      for (const value of some) {
        const line = { ...HEADER, [field]: value }
        expect([field, value, isLine(line)]).toEqual([field, value, isRead(parseHeader, line)])
      }
    }
  })
  it('accept the written format', () => {
    expect(
      isLine(
        JSON.parse(
          formatTask(
            parseTask(
              JSON.stringify({ ...TASK, groups: ['g'], owner: 'ada', alloc: [[0, 5]], cancel_at: 9 }),
            ),
          ),
        ),
      ),
    ).toBe(true)
    expect(isLine(JSON.parse(formatHeader(parseHeader(JSON.stringify(HEADER)))))).toBe(true)
  })
})
