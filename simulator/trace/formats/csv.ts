import type { DurationMs, Instant, Priority } from '../../../protocol/units.ts'
import { parseSizeMib } from '../../document/quantity.ts'
import { wholeCell, wholeOf } from '../import/csv-cells.ts'
import { type CsvRow, readCsv } from '../import/csv-rows.ts'
import {
  DEFAULT_TASK_VRAM_MIB,
  type ImportedTask,
  type Importer,
  type ImportLog,
  type ImportOptions,
  MAX_TASK_GPUS,
  ownerOf,
  plainTask,
  priorityOf,
  type TimeUnit,
} from '../import/importer.ts'
import { RESIDENCE_REASONS, residenceBetween, residenceOf } from '../import/residence.ts'
import { dateTimeOf, isNothing, numberOf, unitsToMs } from '../import/source-values.ts'
import { TraceError } from '../trace-error.ts'
import { MAX_VRAM_MIB } from '../../../protocol/limits.ts'

const CSV_FIELDS = [
  'id', 'at', 'duration', 'start', 'end', 'gpus', 'vram_mib', 'priority', 'noswap', 'exclusive',
  'groups', 'owner', 'cancel_at',
] as const // prettier-ignore
export type CsvField = (typeof CSV_FIELDS)[number]
type Row = CsvRow<CsvField>

/** 16 TiB. */
const MAX_GROUPS = 64
const PER_SECOND: Readonly<Record<TimeUnit, number>> = { s: 1, ms: 1000, us: 1_000_000, ns: 1_000_000_000 }
const YES: ReadonlySet<string> = new Set(['1', 'true', 'yes', 'y'])
const NO: ReadonlySet<string> = new Set(['0', 'false', 'no', 'n', ''])

/**
 * Any CSV file with a header: `columns` maps fields to columns; a column with the name of a field needs no
 * mapping.
 */
export const csv: Importer = {
  format: 'csv',
  licence: null,
  origin: null,
  options: ['columns', 'delimiter', 'timeUnit'],
  about:
    'Any CSV file with a header. `--columns id=JobID,at=Submit,duration=Runtime` maps fields of a task to ' +
    'columns; a column with the name of a field needs no mapping. `--delimiter` (a comma, or `tab`), ' +
    '`--time-unit` (s, ms, us, ns) of bare numbers. Times may also be dates (`2026-01-31T08:00:00Z`, ' +
    '`2026-01-31 08:00:00`).',
  columns: [
    { name: 'id', isRequired: false, becomes: '`id`; else `row-N`' },
    { name: 'at', isRequired: true, becomes: '`at`' },
    { name: 'duration', isRequired: true, becomes: 'the residence; else end − start, else end − at' },
    { name: 'start, end', isRequired: false, becomes: 'the residence, without a duration' },
    { name: 'gpus', isRequired: false, becomes: '`gpus`; else 1' },
    {
      name: 'vram_mib',
      isRequired: false,
      becomes: '`vram_mib`: MiB, or a size with Mi or Gi; else `--vram-mib`',
    },
    {
      name: 'priority',
      isRequired: false,
      becomes: '`priority`: P0 to P4, 0 to 4, or a value of `--priority-map`; empty: P2',
    },
    {
      name: 'noswap, exclusive',
      isRequired: false,
      becomes:
        '`noswap`, `gpu_mode`: 1, true, yes; 0, false, no. Empty: 0, and shared where the VRAM is known',
    },
    { name: 'groups', isRequired: false, becomes: '`groups`, separated by semicolons' },
    { name: 'owner', isRequired: false, becomes: '`owner`' },
    { name: 'cancel_at', isRequired: false, becomes: '`cancel_at`' },
  ],
  dropped: {
    ...RESIDENCE_REASONS,
    no_gpu: 'gpus is 0',
    cancelled_before_submitted: 'cancel_at is before at',
  },
  ignored: {},
  adjusted: {},
  publicData: [],
  async *read(source, options, log) {
    const fieldOf = fieldNames(options.columns ?? new Map())
    const mapped = CSV_FIELDS.filter((field) => options.columns?.has(field))
    const columns = {
      required: ['at', ...mapped.filter((field) => field !== 'at')] as CsvField[],
      optional: CSV_FIELDS.filter((field) => field !== 'at' && !mapped.includes(field)),
      anyOf: mapped.some((field) => field === 'duration' || field === 'end')
        ? []
        : [['duration', 'end'] as CsvField[]],
    }
    const labelOf = (field: string): string => options.columns?.get(field) ?? field
    const time = timeReader(PER_SECOND[options.timeUnit ?? 's'])
    let knowsVram = true
    for await (const row of readCsv(source, columns, log, {
      delimiter: options.delimiter ?? ',',
      nameOf: fieldOf,
      labelOf,
    })) {
      const task = readRow(row, time, options, log)
      if (task === null) continue
      if (
        knowsVram &&
        isNothing(row.cells.vram_mib) &&
        (task.gpu_mode === 'shared' || row.cells.exclusive === '')
      ) {
        knowsVram = false
        log.synthesise('vram_mib')
      }
      yield task
    }
  },
}

/**
 * The field of a column in the header; a column that is mapped elsewhere is not taken for the field of its
 * name.
 */
function fieldNames(columns: ReadonlyMap<string, string>): (header: string) => string {
  const known: ReadonlySet<string> = new Set(CSV_FIELDS)
  const fields = new Map<string, string>()
  for (const [field, column] of columns) {
    if (!known.has(field))
      throw new TraceError(
        { field: 'columns' },
        `there is no field ${field}: there are ${CSV_FIELDS.join(', ')}`,
      )
    if (fields.has(column))
      throw new TraceError(
        { field: 'columns' },
        `column ${column} is mapped to ${fields.get(column)!} and to ${field}`,
      )
    fields.set(column, field)
  }
  return (header) => fields.get(header) ?? (columns.has(header) ? `(${header})` : header)
}

type TimeReader = (text: string) => number | null

/** Bare numbers are in the unit, other values are dates. */
function timeReader(perSecond: number): TimeReader {
  return (text) => {
    const number = numberOf(text)
    return number === null ? dateTimeOf(text) : unitsToMs(number, perSecond)
  }
}

function readRow(row: Row, time: TimeReader, options: ImportOptions, log: ImportLog): ImportedTask | null {
  const { cells } = row
  const at = timeCell(row, 'at', time, log)
  if (at === null) return null
  const gpus = cells.gpus === '' ? 1 : wholeCell(row, 'gpus', 0, MAX_TASK_GPUS, log)
  if (gpus === null) return null
  if (gpus === 0) return dropped(log, 'no_gpu')
  const ms = residence(row, at, time, log)
  if (ms === null) return null
  const vramMib = vramOf(cells.vram_mib)
  if (vramMib === null) return dropped(log, 'bad_vram_mib')
  const priority = prioritySaid(cells.priority, options)
  if (priority === null) return dropped(log, 'bad_priority')
  const noswap = flagOf(cells.noswap)
  if (noswap === null) return dropped(log, 'bad_noswap')
  const isExclusive = flagOf(cells.exclusive)
  if (isExclusive === null) return dropped(log, 'bad_exclusive')
  const cancelAt =
    cells.cancel_at === '' || isNothing(cells.cancel_at) ? null : timeCell(row, 'cancel_at', time, log)
  if (cancelAt === null && !isNothing(cells.cancel_at)) return null
  if (cancelAt !== null && cancelAt < at) return dropped(log, 'cancelled_before_submitted')
  return plainTask(
    {
      id: isNothing(cells.id) ? `row-${row.line}` : cells.id,
      at,
      gpus,
      ...(vramMib === undefined ? {} : { vram_mib: vramMib }),
      ...modeSaid(row, isExclusive, vramMib, options),
      priority,
      noswap: noswap ? 1 : 0,
      groups: groupsOf(cells.groups),
      owner: ownerOf(cells.owner),
      cancel_at: cancelAt,
      work: { kind: 'residence', ms },
    },
    options,
  )
}

/** A cell with yes or no decides; for an empty one the VRAM decides. */
function modeSaid(
  { cells }: Row,
  isExclusive: boolean,
  vramMib: number | undefined,
  { vramMib: assumed }: ImportOptions,
): Partial<ImportedTask> {
  if (isExclusive) return { gpu_mode: 'exclusive', vram_mib: vramMib ?? 0 }
  return cells.exclusive === ''
    ? {}
    : { gpu_mode: 'shared', vram_mib: vramMib ?? assumed ?? DEFAULT_TASK_VRAM_MIB }
}

function residence(row: Row, at: Instant, time: TimeReader, log: ImportLog): DurationMs | null {
  const { duration, start } = row.cells
  if (duration !== '') {
    const ms = timeCell(row, 'duration', (text) => durationOf(text, time), log)
    return ms === null ? null : residenceOf(ms, log)
  }
  const startMs = start === '' ? at : timeCell(row, 'start', time, log)
  const endMs = startMs === null ? null : timeCell(row, 'end', time, log)
  return startMs === null || endMs === null ? null : residenceBetween(startMs, endMs, log)
}

/** A date is not a duration. */
function durationOf(text: string, time: TimeReader): DurationMs | null {
  return numberOf(text) === null ? null : time(text)
}

function timeCell(row: Row, field: CsvField, time: TimeReader, log: ImportLog): number | null {
  const text = row.cells[field]
  const value = time(text)
  if (value === null) log.drop(isNothing(text) ? `no_${field}` : `bad_${field}`)
  return value
}

/** Undefined: empty; null: invalid. */
function vramOf(text: string): number | null | undefined {
  if (isNothing(text)) return undefined
  return parseSizeMib(text) ?? wholeOf(text, 1, MAX_VRAM_MIB)
}

function prioritySaid(text: string, options: ImportOptions): Priority | null {
  if (options.priorityMap?.has(text) === true) return priorityOf([text], options)
  if (isNothing(text)) return 2
  const digit = /^P?([0-4])$/i.exec(text)?.[1]
  return digit === undefined ? null : (Number(digit) as Priority)
}

function flagOf(text: string): boolean | null {
  const word = text.toLowerCase()
  return YES.has(word) ? true : NO.has(word) ? false : null
}

function groupsOf(text: string): string[] {
  const names = text.split(';').map((name) => name.trim())
  return [...new Set(names.filter((name) => name !== ''))].slice(0, MAX_GROUPS)
}

function dropped(log: ImportLog, reason: string): null {
  log.drop(reason)
  return null
}
