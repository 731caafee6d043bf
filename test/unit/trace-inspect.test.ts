import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { formatSummary, inspectTrace, type TraceSummary } from '../../simulator/trace/inspect.ts'
import { openTrace } from '../../simulator/trace/trace-file-reader.ts'
import { writeTrace } from '../../simulator/trace/trace-file-writer.ts'
import type { TraceHeader, TraceTask, Work } from '../../simulator/trace/trace-format.ts'
import { aloneMsOf, busyMsOf } from '../../simulator/trace/work.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-inspect-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const HEADER: TraceHeader = {
  trace: 'two tasks',
  version: 1,
  t_unit: 'ms',
  source: null,
  importer: { format: 'openb', options: {}, synthetic: ['activity'], ignored: {}, adjusted: {} },
  rows: 5,
  dropped: { no_gpu: 3 },
}

function task(id: string, patch: Partial<TraceTask>): TraceTask {
  const base = {
    id,
    at: 0,
    gpus: 1,
    vram_mib: 1000,
    gpu_mode: 'shared',
    priority: 2,
    noswap: 0,
    groups: [],
    owner: null,
  } as const
  return { ...base, work: { kind: 'duration', ms: 1000 }, alloc: [], cancel_at: null, ...patch }
}

async function summaryOf(tasks: readonly TraceTask[], header = HEADER): Promise<TraceSummary> {
  const file = join(folder, 'x.trace.jsonl')
  await writeTrace(file, header, tasks)
  return inspectTrace(await openTrace(file))
}

describe('the busy and the total time of work', () => {
  const cases: ReadonlyArray<readonly [what: string, work: Work, busyMs: number, aloneMs: number]> = [
    ['a duration', { kind: 'duration', ms: 7 }, 7, 7],
    ['phases', { kind: 'phases', phases: [[1, 2], [3, 0]] }, 4, 6], // prettier-ignore
    // prettier-ignore
    ['bursts that queue up', { kind: 'bursts', at: [[0, 10], [5, 10], [100, 1]], stayMs: 50 }, 21, 101],
    ['bursts before the end of the stay', { kind: 'bursts', at: [[0, 10]], stayMs: 50 }, 10, 50],
    ['a stay without any burst', { kind: 'bursts', at: [], stayMs: 50 }, 0, 50],
  ]
  it.each(cases)('are computed for %s', (_what, work, busyMs, aloneMs) => {
    expect([busyMsOf(work), aloneMsOf(work)]).toEqual([busyMs, aloneMs])
  })
})

describe('the summary of a trace', () => {
  it('counts tasks, GPUs, VRAM, GPU work and idleness', async () => {
    const summary = await summaryOf([
      task('a', {
        at: 5000,
        gpus: 8,
        gpu_mode: 'exclusive',
        vram_mib: 0,
        priority: 0,
        work: { kind: 'duration', ms: 3_600_000 },
      }),
      task('b', {
        at: 65_000,
        noswap: 1,
        cancel_at: 70_000,
        work: { kind: 'phases', phases: [[1_800_000, 5_400_000]] },
      }),
    ])
    expect(summary).toMatchObject({
      trace: 'two tasks',
      tasks: 2,
      rows: 5,
      dropped: { no_gpu: 3 },
      arrival_span_s: 60,
      gpus: { 1: 1, 8: 1 },
      priorities: { P0: 1, P1: 0, P2: 1, P3: 0, P4: 0 },
      exclusive: 1,
      noswap: 1,
      cancelled: 1,
      vram_mib: { p50: 1000, p95: 1000, max: 1000 },
      duration_s: { p50: 3600, p95: 7200, max: 7200 },
      busy_gpu_hours: 8.5,
      idle_share: 1 - 8.5 / 10,
      synthetic: ['activity'],
    })
    expect(summary.sha256).toMatch(/^[0-9a-f]{64}$/)
  })
  it('uses nearest-rank percentiles', async () => {
    const { vram_mib: vramMib } = await summaryOf(
      Array.from({ length: 100 }, (_, i) => task(`t${i}`, { vram_mib: 100 - i })),
    )
    expect(vramMib).toEqual({ p50: 50, p95: 95, max: 100 })
  })
  it('of an empty trace has no percentiles and no idle share', async () => {
    expect(await summaryOf([], { ...HEADER, importer: null })).toMatchObject({
      tasks: 0,
      arrival_span_s: 0,
      vram_mib: { p50: null, p95: null, max: null },
      idle_share: null,
      synthetic: null,
    })
  })
  it('prints one fact per line', async () => {
    const summary = await summaryOf([task('a', {}), task('b', { at: 7_200_000 })])
    expect(formatSummary({ ...summary, sha256: 'ab' })).toBe(
      [
        'trace       two tasks',
        'sha256      ab',
        'tasks       2 of 5 rows',
        'dropped     no_gpu: 3',
        'adjusted    none',
        'ignored     none',
        'from        openb',
        'arrivals    over 2.0 h',
        'GPUs        1: 2',
        'priorities  P2: 2',
        'exclusive   0',
        'noswap      0',
        'cancelled   0',
        'VRAM, MiB   p50 1000, p95 1000, max 1000',
        'duration    p50 1.0 s, p95 1.0 s, max 1.0 s',
        'GPU work    0.0 GPU-hours',
        'idle        0.0% of GPU time',
        'synthetic   activity',
        '',
      ].join('\n'),
    )
    expect(formatSummary(await summaryOf([], { ...HEADER, importer: null }))).toContain('idle        unknown')
    expect(formatSummary({ ...(await summaryOf([])), tasks: 2, rows: 0 })).toContain('tasks       2\n')
  })
})
