import { execFile } from 'node:child_process'
import type { DurationMs } from '../../../protocol/units.ts'
import { HelperFault } from './helper-messages.ts'
import type { GpuMemory, GpuSnapshot, HostSnapshot, ProcessMemory } from './snapshot.ts'

const MAX_OUTPUT_BYTES = 1024 * 1024
/** The name is last: only it could contain a comma, and fields are not quoted. */
const GPU_FIELDS = [
  'index',
  'uuid',
  'memory.total',
  'memory.reserved',
  'memory.free',
  'utilization.gpu',
  'mig.mode.current',
  'driver_version',
  'name',
]
/** Fields that early versions of nvidia-smi lack; an unknown field makes it refuse the whole query. */
const LATER_FIELDS = ['memory.reserved', 'mig.mode.current']
/** Replaces one of those fields; never a whole number. */
const PLACEHOLDER = 'pstate'
const PROCESS_FIELDS = ['pid', 'gpu_uuid', 'used_gpu_memory']
const FORMAT = '--format=csv,noheader,nounits'

/** Reads `nvidia-smi`, for hosts where NVML cannot be called. Rejects with HelperFault. */
export async function smiSnapshot(program: string, timeoutMs: DurationMs): Promise<HostSnapshot> {
  const gpus = await queryGpus(program, timeoutMs, GPU_FIELDS).catch((fault: HelperFault) => {
    if (!/is not a valid field/.test(fault.message)) throw fault
    return queryGpus(
      program,
      timeoutMs,
      GPU_FIELDS.map((field) => (LATER_FIELDS.includes(field) ? PLACEHOLDER : field)),
    )
  })
  const processes = await query(program, timeoutMs, [
    `--query-compute-apps=${PROCESS_FIELDS.join(',')}`,
    FORMAT,
  ])
  return parseSmi(gpus, processes)
}

/**
 * Invalid rows are skipped and named in the GPU's faults; they throw where a GPU's place in the order would
 * be lost.
 */
export function parseSmi(gpuRows: string, processRows: string): HostSnapshot {
  const rows = lines(gpuRows).map((row) => gpuRow(row))
  if (rows.length === 0) throw driverFault('nvidia-smi lists no GPU')
  rows.forEach((row, place) => {
    if (row.index !== place) throw driverFault(`nvidia-smi lists GPU ${row.index} in place ${place}`)
  })
  const processes = lines(processRows).map((row) => ({ row, parsed: processRow(row) }))
  const bad = processes
    .filter(({ parsed }) => parsed === null)
    .map(({ row }) => `nvidia-smi: not a process: ${JSON.stringify(row.slice(0, 100))}`)
  return {
    driver: rows[0]?.driver ?? '',
    gpus: rows.map((row): GpuSnapshot => {
      const own = processes.flatMap(({ parsed }) =>
        parsed !== null && parsed.gpu === row.uuid ? [parsed] : [],
      )
      return {
        index: row.index,
        uuid: row.uuid,
        model: row.model,
        memory: row.memory,
        isMig: row.isMig,
        utilizationPercent: row.utilizationPercent,
        processes: own.map(({ pid, usedMib }): ProcessMemory => ({ pid, usedMib })),
        busyPids: null,
        faults: row.index === 0 ? bad : [],
      }
    }),
  }
}

interface GpuRow {
  readonly index: number
  readonly uuid: string | null
  readonly model: string
  readonly memory: GpuMemory | null
  readonly utilizationPercent: number | null
  readonly isMig: boolean
  readonly driver: string
}

function gpuRow(row: string): GpuRow {
  const fields = row.split(',').map((field) => field.trim())
  const [index, uuid, total, reserved, free, utilization, mig, driver] = fields
  const place = whole(index)
  if (place === null || driver === undefined)
    throw driverFault(`nvidia-smi: not a GPU: ${JSON.stringify(row.slice(0, 100))}`)
  const totalMib = whole(total)
  const freeMib = whole(free)
  return {
    index: place,
    uuid: uuid !== undefined && /^(GPU|MIG)-[0-9a-f-]+$/i.test(uuid) ? uuid : null,
    model: fields.slice(8).join(', ') || 'unknown',
    memory:
      totalMib === null || freeMib === null
        ? null
        : { physicalMib: Math.max(0, totalMib - (whole(reserved) ?? 0)), freeMib },
    utilizationPercent: whole(utilization),
    isMig: mig === 'Enabled',
    driver,
  }
}

function processRow(row: string): { pid: number; gpu: string; usedMib: number | null } | null {
  const [pid, gpu, used, ...rest] = row.split(',').map((field) => field.trim())
  const number = whole(pid)
  if (number === null || number === 0 || gpu === undefined || used === undefined || rest.length > 0)
    return null
  return { pid: number, gpu, usedMib: whole(used) }
}

/** Null for `[N/A]`, `[Not Supported]`, `[Unknown Error]` and anything else that is not a whole number. */
function whole(field: string | undefined): number | null {
  return field !== undefined && /^\d{1,9}$/.test(field) ? Number(field) : null
}

function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

function queryGpus(program: string, timeoutMs: DurationMs, fields: readonly string[]): Promise<string> {
  return query(program, timeoutMs, [`--query-gpu=${fields.join(',')}`, FORMAT])
}

function query(program: string, timeoutMs: DurationMs, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      program,
      args,
      { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT_BYTES },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout)
        else reject(failure(program, timeoutMs, error, stdout || stderr))
      },
    )
  })
}

function failure(
  program: string,
  timeoutMs: DurationMs,
  error: Error & { code?: unknown; killed?: boolean },
  output: string,
): HelperFault {
  if (error.code === 'ENOENT')
    return new HelperFault({ kind: 'library_missing', message: `${program} not found`, code: null })
  if (error.killed === true)
    return new HelperFault({
      kind: 'timeout',
      message: `${program} did not answer within ${timeoutMs} ms`,
      code: null,
    })
  return driverFault(`${program} failed: ${lines(output)[0] ?? error.message}`)
}

function driverFault(message: string): HelperFault {
  return new HelperFault({ kind: 'driver', message, code: null })
}
