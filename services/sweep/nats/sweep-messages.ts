/**
 * Messages between workers and the command that starts a sweep, and their checks. The sender is not trusted:
 * names, suffixes and sizes are checked against a list of allowed values, and an invalid message is refused
 * with one line. No path is built from any of it.
 */
import type { RunResult } from '../../../simulator/results/result.ts'
import type { RunIdentity } from '../../../simulator/run/run.ts'
import { overrideFieldProblem } from '../../../simulator/document/override.ts'
import type { Settings } from '../../../simulator/experiment/sweep/sweep.ts'
import type { Timing } from '../../runs/stopwatch.ts'
import { RESULT_FILES } from '../run-store.ts'
import { MAX_BLOB_BYTES, MAX_BLOB_CHUNKS, type BlobRef } from './blobs.ts'

/** Both sides must have the same. */
export const FORMAT = 2

export interface BuildIdentity {
  readonly version: string
  /** Null where it is not known. */
  readonly commit: string | null
}

/** A message of the work queue. */
export interface JobMessage extends BuildIdentity {
  readonly format: number
  readonly sweep: string
  /** Id of the run within the sweep. */
  readonly run: string
  readonly overcommit_percent: number
  readonly seed: number
  /** A PointBlob. */
  readonly point: BlobRef
  readonly files: (typeof FILES)[number]
  /** A worker that is silent for this long counts as lost. */
  readonly silent_ms: number
}

/** A scenario with everything that it reads. */
export interface PointBlob {
  readonly text: string
  /** Path of the file at the sender; only used for names. */
  readonly file: string
  readonly base_dir: string
  readonly settings: Settings
  readonly identity: RunIdentity
  /** By their path relative to base_dir. */
  readonly traces: Readonly<Record<string, TraceRef>>
}

export interface TraceRef extends BlobRef {
  readonly suffix: (typeof SUFFIXES)[number]
}

export type ResultMessage = {
  readonly format: number
  readonly run: string
} & (
  | {
      readonly kind: 'done'
      readonly result: RunResult
      readonly timing: Timing
      readonly operator_faults: readonly string[]
      readonly files: Readonly<Record<string, BlobRef>>
    }
  | { readonly kind: 'failed'; readonly name: string; readonly message: string }
)

const FILES = ['none', 'all', 'without_journal'] as const
const SUFFIXES = ['', '.gz'] as const

export const MAX_JOB_BYTES = 16 * 1024
const MAX_RESULT_BYTES = 240 * 1024
/** A scenario has at most 1 MiB; its name, settings and list of traces are added. */
const MAX_POINT_BYTES = 4 * 1024 * 1024
const MAX_SCENARIO_CHARS = 1024 * 1024
const MAX_PATH_CHARS = 4096
const MAX_TRACES = 100
const MAX_SETTINGS = 100
const MAX_SILENT_MS = 3_600_000
const MAX_PERCENT = 10_000
const MAX_FAULTS = 10_000

/** A token of a subject: no dot, no slash, no wildcard. */
const TOKEN = /^[A-Za-z0-9_-]{1,64}$/
const VERSION = /^[0-9A-Za-z.+-]{1,64}$/
const COMMIT = /^[0-9a-f]{7,64}$/
const SHA256 = /^[0-9a-f]{64}$/
const SCALARS: ReadonlySet<string> = new Set(['string', 'number', 'boolean'])

export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: string }

/** Returns a job of this format; of another format only the build is read. */
export function readJob(data: Uint8Array): Read<JobMessage> {
  return read(data, MAX_JOB_BYTES, (job) => {
    need(isWhole(job.format, 1, 1_000_000), 'format')
    need(isText(job.version, VERSION), 'version')
    need(job.commit === null || isText(job.commit, COMMIT), 'commit')
    need(isText(job.sweep, TOKEN), 'sweep')
    need(isText(job.run, TOKEN), 'run')
    if (job.format !== FORMAT) return
    need(isNumber(job.overcommit_percent, 0, MAX_PERCENT), 'overcommit_percent')
    need(isWhole(job.seed, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), 'seed')
    needBlob(job.point, 'point', MAX_POINT_BYTES)
    need(isOneOf(job.files, FILES), 'files')
    need(isWhole(job.silent_ms, 1, MAX_SILENT_MS), 'silent_ms')
  })
}

export function readPoint(data: Uint8Array): Read<PointBlob> {
  return read(data, MAX_POINT_BYTES, (point) => {
    need(isShort(point.text, MAX_SCENARIO_CHARS), 'text')
    need(isShort(point.file, MAX_PATH_CHARS), 'file')
    need(isShort(point.base_dir, MAX_PATH_CHARS), 'base_dir')
    const { settings } = point
    need(isRecord(settings) && Object.keys(settings).length <= MAX_SETTINGS, 'settings')
    for (const [field, each] of Object.entries(settings as Members)) {
      need(overrideFieldProblem(field) === null && (each === null || SCALARS.has(typeof each)), 'settings')
    }
    need(isRecord(point.identity), 'identity')
    const { traces } = point
    need(isRecord(traces) && Object.keys(traces).length <= MAX_TRACES, 'traces')
    for (const [name, ref] of Object.entries(traces as Members)) {
      need(name.length <= MAX_PATH_CHARS, 'traces')
      needBlob(ref, 'traces', MAX_BLOB_BYTES)
      need(isOneOf((ref as Members).suffix, SUFFIXES), 'traces/suffix')
    }
  })
}

export function readResult(data: Uint8Array): Read<ResultMessage> {
  return read(data, MAX_RESULT_BYTES, (message) => {
    need(isWhole(message.format, 1, 1_000_000), 'format')
    need(isText(message.run, TOKEN), 'run')
    need(isOneOf(message.kind, ['done', 'failed']), 'kind')
    if (message.kind === 'failed') {
      need(isShort(message.name, 100), 'name')
      return need(isShort(message.message, MAX_RESULT_BYTES), 'message')
    }
    need(isRecord(message.result), 'result')
    need(isRecord(message.timing), 'timing')
    const { operator_faults: faults, files } = message
    need(
      Array.isArray(faults) &&
        faults.length <= MAX_FAULTS &&
        faults.every((each) => typeof each === 'string'),
      'operator_faults',
    )
    need(isRecord(files), 'files')
    for (const [name, ref] of Object.entries(files as Members)) {
      need(isOneOf(name, RESULT_FILES), 'files')
      needBlob(ref, `files/${name}`, MAX_BLOB_BYTES)
    }
  })
}

type Members = Readonly<Record<string, unknown>>

class Misfit extends Error {}

function read<T>(data: Uint8Array, maxBytes: number, check: (members: Members) => void): Read<T> {
  if (data.length > maxBytes) return { ok: false, why: `${data.length} bytes; the limit is ${maxBytes}` }
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data))
  } catch {
    return { ok: false, why: 'not JSON' }
  }
  if (!isRecord(value)) return { ok: false, why: 'not an object' }
  try {
    check(value)
  } catch (error) {
    if (error instanceof Misfit) return { ok: false, why: error.message }
    throw error
  }
  return { ok: true, value: value as T }
}

function need(fits: boolean, member: string): asserts fits {
  if (!fits) throw new Misfit(`member ${member} is missing or out of bounds`)
}

function needBlob(value: unknown, member: string, maxBytes: number): void {
  need(isRecord(value), member)
  need(isText(value.sha256, SHA256), `${member}/sha256`)
  need(isWhole(value.bytes, 0, maxBytes), `${member}/bytes`)
  need(isWhole(value.chunks, 1, MAX_BLOB_CHUNKS), `${member}/chunks`)
}

function isRecord(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value)
}

function isShort(value: unknown, maxChars: number): boolean {
  return typeof value === 'string' && value.length <= maxChars
}

function isWhole(value: unknown, min: number, max: number): boolean {
  return Number.isSafeInteger(value) && isNumber(value, min, max)
}

function isNumber(value: unknown, min: number, max: number): boolean {
  return typeof value === 'number' && value >= min && value <= max
}

function isOneOf(value: unknown, allowed: readonly string[]): boolean {
  return typeof value === 'string' && allowed.includes(value)
}
