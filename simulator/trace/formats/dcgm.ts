import { SAMPLE_ADJUSTMENTS, SAMPLE_REASONS, SampledGpus } from '../import/gpu-samples.ts'
import type { Importer } from '../import/importer.ts'
import { textLines } from '../line-blocks.ts'
import { isNothing, numberOf } from '../import/source-values.ts'
import { TraceError } from '../trace-error.ts'

/** Short names in the header: GPU utilization, best first, with the factor to percent. */
const BUSY_COLUMNS: ReadonlyArray<readonly [name: string, toPercent: number]> = [
  ['GRACT', 100],
  ['GPUTL', 1],
  ['SMACT', 100],
]
const USED_COLUMN = 'FBUSD'
const DEFAULT_INTERVAL_MS = 1000

/**
 * The output of `dcgmi dmon`. Its lines contain no time: sample n of a GPU is n intervals after its first.
 * Source: DCGM user guide, dcgmi dmon.
 */
export const dcgm: Importer = {
  format: 'dcgm',
  licence: null,
  origin: null,
  options: ['busyAbovePercent', 'vramAboveMib', 'gapMs', 'intervalMs'],
  about:
    'Samples of GPUs: `dcgmi dmon -e 203,252 -d 1000` (GPUTL and FBUSD; or 1001 GRACT, 1002 ' +
    'SMACT), one line per sample and GPU, columns separated by blanks. The lines contain no ' +
    'time: `--interval` (1s) is the value of -d. A task is whatever uses VRAM on one GPU.',
  columns: [
    { name: 'Entity', isRequired: true, becomes: 'the GPU (`GPU 0`); `id` is this and a number' },
    {
      name: 'GRACT',
      isRequired: true,
      becomes:
        'share of 1; above `--busy-above` (0%): GPU work until the next sample, otherwise ' +
        'idle. Without it GPUTL (%), then SMACT (share)',
    },
    { name: 'GPUTL, SMACT', isRequired: false, becomes: 'the same, without GRACT' },
    {
      name: 'FBUSD',
      isRequired: false,
      becomes: 'MiB; above `--vram-above-mib` (1024): a task is present; `vram_mib` is its maximum',
    },
  ],
  dropped: {
    ...SAMPLE_REASONS,
    no_busy_value: 'N/A for the utilization; its time counts',
    no_FBUSD: 'N/A; its time counts',
    no_gpu_line: 'neither a header nor a GPU: totals, messages',
    wrong_number_of_columns: 'more or fewer values than names in the header',
  },
  ignored: {},
  adjusted: SAMPLE_ADJUSTMENTS,
  publicData: [],
  async *read(source, options, log) {
    const gpus = new SampledGpus(options, log)
    const intervalMs = options.intervalMs ?? DEFAULT_INTERVAL_MS
    const samplesOf = new Map<string, number>()
    let header: Header | null = null
    for await (const { line, text } of textLines(source)) {
      if (/^#?\s*Entity\b/i.test(text)) {
        header = readHeader(text, source.file, line)
        if (header.usedAt === -1 && samplesOf.size === 0) log.synthesise('vram_mib')
        continue
      }
      if (/^(ID|Id)\b/.test(text)) continue
      log.row()
      const match = /^(GPU(?:-I)?\s+\S+)\s+(.*)$/.exec(text)
      if (match === null) {
        log.drop('no_gpu_line')
        continue
      }
      if (header === null)
        throw new TraceError({ file: source.file, line }, 'comes before a header (#Entity GPUTL FBUSD)')
      const gpu = match[1]!.replace(/\s+/, '-')
      const sample = samplesOf.get(gpu) ?? 0
      samplesOf.set(gpu, sample + 1)
      const values = match[2]!.split(/\s+/)
      const measured = measuredIn(values, header)
      if (typeof measured === 'string') log.drop(measured)
      else yield* gpus.take({ gpu, at: sample * intervalMs, ...measured })
    }
    if (header === null) throw new TraceError({ file: source.file }, 'has no header (#Entity GPUTL FBUSD)')
    yield* gpus.end()
  },
}

interface Header {
  readonly columns: number
  readonly busyAt: number
  readonly toPercent: number
  /** -1: not sampled. */
  readonly usedAt: number
}

/** Names after the entity, which itself takes two columns of a line. */
function readHeader(text: string, file: string, line: number): Header {
  const names = text.replace(/^#?\s*Entity\s*/i, '').split(/\s+/)
  const busy = BUSY_COLUMNS.find(([name]) => names.includes(name))
  if (busy === undefined) {
    throw new TraceError(
      { file, line },
      `has no column GRACT, GPUTL or SMACT (its columns: ${names.join(', ')})`,
    )
  }
  return {
    columns: names.length,
    busyAt: names.indexOf(busy[0]),
    toPercent: busy[1],
    usedAt: names.indexOf(USED_COLUMN),
  }
}

/** The measured value, or the reason for having none. */
function measuredIn(
  values: readonly string[],
  { columns, busyAt, toPercent, usedAt }: Header,
): string | { busyPercent: number; usedMib: number | null } {
  if (values.length !== columns) return 'wrong_number_of_columns'
  const busy = numberOf(values[busyAt]!)
  if (busy === null || busy < 0) return isNothing(values[busyAt]!) ? 'no_busy_value' : 'bad_GRACT'
  if (usedAt === -1) return { busyPercent: busy * toPercent, usedMib: null }
  const used = numberOf(values[usedAt]!)
  if (used === null || used < 0) return isNothing(values[usedAt]!) ? 'no_FBUSD' : 'bad_FBUSD'
  return { busyPercent: busy * toPercent, usedMib: Math.round(used) }
}
