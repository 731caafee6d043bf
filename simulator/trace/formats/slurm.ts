import type { DurationMs, Instant, Mib } from '../../../protocol/units.ts'
import { instantCell, secondsCell, textCell } from '../import/csv-cells.ts'
import { type CsvRow, readCsv } from '../import/csv-rows.ts'
import {
  DEFAULT_RESERVE_MIB,
  type ImportedTask,
  type Importer,
  type ImportLog,
  type ImportOptions,
  MAX_TASK_GPUS,
  ownerOf,
  plainTask,
  priorityOf,
} from '../import/importer.ts'
import { RESIDENCE_REASONS, residenceBetween, residenceOf } from '../import/residence.ts'
import { isNothing } from '../import/source-values.ts'
import { withDefaultVram } from '../import/vram-map.ts'

const COLUMNS = {
  required: ['Submit'],
  optional: [
    'JobIDRaw', 'JobID', 'AllocTRES', 'ReqTRES', 'ElapsedRaw', 'Elapsed', 'End', 'Start', 'Eligible',
    'State', 'User', 'Account', 'Partition', 'QOS',
  ],
  anyOf: [
    ['JobIDRaw', 'JobID'],
    ['AllocTRES', 'ReqTRES'],
    ['ElapsedRaw', 'Elapsed', 'End'],
  ],
} as const // prettier-ignore
type Column = (typeof COLUMNS)['required'][number] | (typeof COLUMNS)['optional'][number]
type Row = CsvRow<Column>

/**
 * Slurm's accounting: `sacct --parsable2 --allusers --duplicates
 * --format=JobIDRaw,User,Account,Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,AllocTRES,State`. Cells
 * are separated by bars, with a header and without quotes. Source: man sacct.
 */
export const slurm: Importer = {
  format: 'slurm',
  licence: null,
  origin: null,
  options: [],
  about:
    'Accounting of a Slurm cluster: `sacct -P --allusers ' +
    '--format=JobIDRaw,User,Account,Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,AllocTRES,State`, ' +
    'one job per row. Times are local, or seconds with SLURM_TIME_FORMAT=%s.',
  columns: [
    {
      name: 'JobIDRaw',
      isRequired: true,
      becomes: '`id`; else JobID. Each task of an array has its own (`123_4`)',
    },
    { name: 'JobID', isRequired: false, becomes: '`id`, without JobIDRaw' },
    { name: 'Submit', isRequired: true, becomes: '`at`' },
    {
      name: 'Eligible',
      isRequired: false,
      becomes: '`at`, if later: the job had to wait for another job or for its start time',
    },
    {
      name: 'AllocTRES',
      isRequired: true,
      becomes:
        '`gpus`: gres/gpu=N, else the sum of gres/gpu:TYPE=N; empty: ReqTRES. `vram_mib`: a ' +
        'whole GPU of TYPE minus the reserve if `--vram-map` has the type (Slurm allocates ' +
        'whole GPUs), else `--vram-mib`',
    },
    { name: 'ReqTRES', isRequired: false, becomes: 'the same, without AllocTRES' },
    {
      name: 'ElapsedRaw',
      isRequired: true,
      becomes: 'the residence; else Elapsed (D-HH:MM:SS), else End − Start',
    },
    {
      name: 'Elapsed, Start, End',
      isRequired: false,
      becomes: 'the residence, without ElapsedRaw',
    },
    { name: 'State', isRequired: false, becomes: 'whether it ran, and whether it has ended' },
    { name: 'User', isRequired: false, becomes: '`owner`' },
    {
      name: 'QOS, Partition, Account',
      isRequired: false,
      becomes: '`priority` by `--priority-map`, the first value in the map; else P2',
    },
  ],
  dropped: {
    ...RESIDENCE_REASONS,
    step: 'a step of a job (.batch, .extern, .0), which the job already counts',
    no_gpu: 'it had no GPU',
    never_started: 'it was cancelled, or still waits',
    still_running: 'it has no end yet',
  },
  ignored: {
    cpu: 'it had CPUs',
    host_memory: 'it had host memory',
    several_nodes: 'it used several nodes; a task of Headroom has all its GPUs on one',
    partition: 'it was bound to a partition',
  },
  adjusted: { submitted_when_eligible: 'its arrival is when it became eligible' },
  publicData: [],
  async *read(source, options, log) {
    log.synthesise('vram_mib')
    for await (const row of readCsv(source, COLUMNS, log, { delimiter: '|', hasQuotes: false })) {
      const task = readJob(row, options, log)
      if (task !== null) yield task
    }
  },
}

function readJob(row: Row, options: ImportOptions, log: ImportLog): ImportedTask | null {
  const { cells } = row
  const id = textCell(row, cells.JobIDRaw === '' ? 'JobID' : 'JobIDRaw', log)
  if (id === null) return null
  if (id.includes('.')) return dropped(log, 'step')
  const tresColumn = isNothing(cells.AllocTRES) ? 'ReqTRES' : 'AllocTRES'
  const gpus = gpusOf(cells[tresColumn])
  if (gpus === null || gpus.count > MAX_TASK_GPUS) return dropped(log, `bad_${tresColumn}`)
  if (gpus.count === 0) return dropped(log, 'no_gpu')
  const at = arrivalOf(row, log)
  if (at === null) return null
  if (/^PENDING/i.test(cells.State)) return dropped(log, 'never_started')
  const ms = timeOf(row, log)
  if (ms === null) return null
  noteIgnored(row, cells[tresColumn], log)
  if (at.isEligible) log.adjust('submitted_when_eligible')
  return plainTask(
    {
      id,
      at: at.ms,
      gpus: gpus.count,
      ...vramOf(gpus.types, options),
      priority: priorityOf([cells.QOS, cells.Partition, cells.Account], options),
      owner: ownerOf(cells.User),
      work: { kind: 'residence', ms },
    },
    options,
  )
}

interface Gpus {
  readonly count: number
  readonly types: readonly string[]
}

/** Null if it names GPUs in an unknown form. */
function gpusOf(tres: string): Gpus | null {
  let total: number | null = null
  let typed = 0
  const types: string[] = []
  for (const part of tres.split(',')) {
    if (!part.startsWith('gres/gpu')) continue
    const match = /^gres\/gpu(?::([^=]+))?=(\d{1,9})$/.exec(part)
    // Memory and utilization of GPUs are separate resources: gres/gpumem, gres/gpuutil.
    if (match === null && /^gres\/gpu[a-z]/.test(part)) continue
    if (match === null) return null
    const count = Number(match[2])
    if (match[1] === undefined) total = count
    else {
      typed += count
      types.push(match[1])
    }
  }
  return { count: total ?? typed, types }
}

function arrivalOf(row: Row, log: ImportLog): { readonly ms: Instant; readonly isEligible: boolean } | null {
  const submitMs = instantCell(row, 'Submit', log)
  if (submitMs === null) return null
  const eligibleMs = isNothing(row.cells.Eligible) ? null : instantCell(row, 'Eligible', SILENT)
  return eligibleMs !== null && eligibleMs > submitMs
    ? { ms: eligibleMs, isEligible: true }
    : { ms: submitMs, isEligible: false }
}

const SILENT = { drop: (): void => {} }

/** ElapsedRaw first: it is also right over a change of daylight saving time. */
function timeOf(row: Row, log: ImportLog): DurationMs | null {
  const { Start, End, State, ElapsedRaw, Elapsed } = row.cells
  const isRunning = /^(RUNNING|SUSPENDED|COMPLETING|REQUEUED|RESIZING)/i.test(State)
  if (isRunning) return dropped(log, 'still_running')
  if (ElapsedRaw !== '') {
    const ms = secondsCell(row, 'ElapsedRaw', log)
    if (ms === 0 && /^CANCELLED/i.test(State)) return dropped(log, 'never_started')
    return ms === null ? null : residenceOf(ms, log)
  }
  if (Elapsed !== '') {
    const ms = elapsedOf(Elapsed)
    if (ms === null) return dropped(log, 'bad_Elapsed')
    return residenceOf(ms, log)
  }
  if (isNothing(Start)) return dropped(log, 'never_started')
  if (isNothing(End)) return dropped(log, 'still_running')
  const startMs = instantCell(row, 'Start', log)
  const endMs = startMs === null ? null : instantCell(row, 'End', log)
  return startMs === null || endMs === null ? null : residenceBetween(startMs, endMs, log)
}

/** `D-HH:MM:SS`, `HH:MM:SS`, `MM:SS`, with or without a fraction. */
function elapsedOf(text: string): DurationMs | null {
  const match = /^(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})(\.\d+)?$/.exec(text)
  if (match === null) return null
  const [days, hours, minutes, seconds] = match.slice(1, 5).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
  ]
  return (
    (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + Math.trunc(Number(match[5] ?? 0) * 1000)
  )
}

function vramOf(
  types: readonly string[],
  { vramMap, reserveMib = DEFAULT_RESERVE_MIB }: ImportOptions,
): { readonly vram_mib?: Mib } {
  const known = withDefaultVram(vramMap)
  const sizes = types.flatMap((type) => known.get(type) ?? known.get(type.toUpperCase()) ?? [])
  return sizes.length === 0 ? {} : { vram_mib: Math.max(1, Math.min(...sizes) - reserveMib) }
}

function noteIgnored({ cells }: Row, tres: string, log: ImportLog): void {
  if (/(^|,)cpu=[1-9]/.test(tres)) log.ignore('cpu')
  if (/(^|,)mem=[0-9.]*[1-9]/.test(tres)) log.ignore('host_memory')
  if (Number(/(?:^|,)node=(\d+)/.exec(tres)?.[1] ?? 1) > 1) log.ignore('several_nodes')
  if (!isNothing(cells.Partition)) log.ignore('partition')
}

function dropped(log: ImportLog, reason: string): null {
  log.drop(reason)
  return null
}
