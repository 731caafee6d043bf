/** The line of a task: from text to task and back. */
import type { GpuMode, Mib, NoSwap, Priority } from '../../protocol/units.ts'
import {
  integer,
  type Json,
  LineProblem,
  object,
  pairs,
  parseObject,
  refuseUnknownKeys,
  shown,
  textOf,
} from './json-fields.ts'
import type { TraceTask, Work } from './trace-format.ts'
import { MAX_VRAM_MIB } from '../../protocol/limits.ts'

const MAX_GPUS = 1024
const MAX_GROUPS = 64
const DEFAULT_PRIORITY: Priority = 2
const NO_GROUPS: readonly string[] = Object.freeze([])
const NO_ALLOC: TraceTask['alloc'] = Object.freeze([])
const TASK_KEYS: ReadonlySet<string> = new Set<keyof TraceTask>([
  'id',
  'at',
  'gpus',
  'vram_mib',
  'gpu_mode',
  'priority',
  'noswap',
  'groups',
  'owner',
  'work',
  'alloc',
  'cancel_at',
])

/** Throws LineProblem. */
export function parseTask(text: string): TraceTask {
  const line = parseObject(text)
  refuseUnknownKeys(line, TASK_KEYS, '')
  const at = integer(line['at'], 'at', 0)
  const gpuMode = gpuModeOf(line['gpu_mode'])
  const vramMib = vramOf(line['vram_mib'], gpuMode)
  return {
    id: textOf(line['id'], 'id'),
    at,
    gpus: integer(line['gpus'], 'gpus', 1, MAX_GPUS),
    vram_mib: vramMib,
    gpu_mode: gpuMode,
    priority:
      line['priority'] === undefined
        ? DEFAULT_PRIORITY
        : (integer(line['priority'], 'priority', 0, 4) as Priority),
    noswap: line['noswap'] === undefined ? 0 : (integer(line['noswap'], 'noswap', 0, 1) as NoSwap),
    groups: groupsOf(line['groups']),
    owner: line['owner'] === undefined || line['owner'] === null ? null : textOf(line['owner'], 'owner'),
    work: parseWork(line['work'], 'work'),
    alloc: allocOf(line['alloc']),
    cancel_at:
      line['cancel_at'] === undefined || line['cancel_at'] === null
        ? null
        : integer(line['cancel_at'], 'cancel_at', at),
  }
}

/** The line of a task, without the fields that have their default. */
export function formatTask(task: TraceTask): string {
  const { id, at, gpus, vram_mib, gpu_mode, priority, noswap, groups, owner, work, alloc, cancel_at } = task
  const line: Json = { id, at, gpus, vram_mib, gpu_mode, priority, noswap }
  if (groups.length > 0) line['groups'] = groups
  if (owner !== null) line['owner'] = owner
  line['work'] = work
  if (alloc.length > 0) line['alloc'] = alloc
  if (cancel_at !== null) line['cancel_at'] = cancel_at
  return JSON.stringify(line)
}

/**
 * Checks the work of a task, also for work in a scenario. Throws LineProblem whose field begins with `field`.
 */
function parseWork(value: unknown, field: string): Work {
  const work = object(value, field)
  switch (work['kind']) {
    case 'duration':
      refuseUnknownKeys(work, DURATION_KEYS, `${field}.`)
      return { kind: 'duration', ms: integer(work['ms'], `${field}.ms`, 1) }
    case 'phases':
      refuseUnknownKeys(work, PHASES_KEYS, `${field}.`)
      return { kind: 'phases', phases: phasesOf(work['phases'], `${field}.phases`) }
    case 'bursts':
      refuseUnknownKeys(work, BURSTS_KEYS, `${field}.`)
      return burstsOf(work, field)
    default:
      throw new LineProblem(
        `${field}.kind`,
        `must be "duration", "phases" or "bursts", is ${shown(work['kind'])}`,
      )
  }
}

const DURATION_KEYS: ReadonlySet<string> = new Set(['kind', 'ms'])
const PHASES_KEYS: ReadonlySet<string> = new Set(['kind', 'phases'])
const BURSTS_KEYS: ReadonlySet<string> = new Set(['kind', 'at', 'stayMs'])

function phasesOf(value: unknown, field: string): ReadonlyArray<readonly [number, number]> {
  const phases = pairs(value, field, 0)
  let totalMs = 0
  for (const [busyMs, idleMs] of phases) totalMs += busyMs + idleMs
  if (totalMs === 0) throw new LineProblem(field, 'must last 1 ms or longer in all')
  if (totalMs > Number.MAX_SAFE_INTEGER) throw new LineProblem(field, 'last longer than can be counted in ms')
  return phases
}

function burstsOf(work: Json, field: string): Work {
  const at = pairs(work['at'], `${field}.at`, 1)
  const stayMs = integer(work['stayMs'], `${field}.stayMs`, at.length === 0 ? 1 : 0)
  for (let i = 1; i < at.length; i++) {
    if (at[i]![0] < at[i - 1]![0])
      throw new LineProblem(`${field}.at[${i}][0]`, `falls from ${at[i - 1]![0]} to ${at[i]![0]}`)
  }
  return { kind: 'bursts', at, stayMs }
}

function allocOf(value: unknown): TraceTask['alloc'] {
  if (value === undefined) return NO_ALLOC
  const steps = pairs(value, 'alloc', 1)
  let [t, mib] = [-1, 0]
  for (const [i, step] of steps.entries()) {
    if (step[0] <= t) throw new LineProblem(`alloc[${i}][0]`, `must be above ${t}, is ${step[0]}`)
    if (step[1] <= mib) throw new LineProblem(`alloc[${i}][1]`, `must be above ${mib}, is ${step[1]}`)
    ;[t, mib] = step
  }
  if (mib > MAX_VRAM_MIB) throw new LineProblem('alloc', `must stay at or below ${MAX_VRAM_MIB} MiB`)
  return steps.length === 0 ? NO_ALLOC : steps
}

function gpuModeOf(value: unknown): GpuMode {
  if (value === undefined || value === 'shared') return 'shared'
  if (value === 'exclusive') return 'exclusive'
  throw new LineProblem('gpu_mode', `must be "shared" or "exclusive", is ${shown(value)}`)
}

function vramOf(value: unknown, gpuMode: GpuMode): Mib {
  if (gpuMode === 'exclusive') return value === undefined ? 0 : integer(value, 'vram_mib', 0, MAX_VRAM_MIB)
  return integer(value, 'vram_mib', 1, MAX_VRAM_MIB)
}

function groupsOf(value: unknown): readonly string[] {
  if (value === undefined) return NO_GROUPS
  if (!Array.isArray(value)) throw new LineProblem('groups', `must be a list of names, is ${shown(value)}`)
  if (value.length > MAX_GROUPS)
    throw new LineProblem('groups', `has ${value.length} names, more than ${MAX_GROUPS}`)
  return value.length === 0 ? NO_GROUPS : value.map((name, i) => textOf(name, `groups[${i}]`))
}
