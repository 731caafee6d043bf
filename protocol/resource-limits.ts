/** What a task may use of its host besides GPUs. */
import { integer, optional, record } from './fields.ts'
import type { Value } from './fields.ts'
import { MAX_CPUS, MAX_HOST_MIB, MAX_PIDS, MIN_MEMORY_MIB, MIN_PIDS } from './limits.ts'
import type { DeviceKind, Mib } from './units.ts'

/** Null: no limit of its own. */
export interface ResourceLimits {
  readonly memoryMib: Mib | null
  readonly cpus: number | null
  /** Processes and threads. */
  readonly pids: number | null
}

/** Each field of the body of a request; the task then has none, or any of them. */
export interface ResourceLimitsBody {
  readonly memory_mib?: Mib | null | undefined
  readonly cpus?: number | null | undefined
  readonly pids_limit?: number | null | undefined
}

export const memoryMib = (description: string) => integer(MIN_MEMORY_MIB, MAX_HOST_MIB, description)
export const cpus = (description: string) => integer(1, MAX_CPUS, description)
export const pidsLimit = (description: string) => integer(MIN_PIDS, MAX_PIDS, description)

/** As a start gives them to a server. */
export const LIMITS_RECORD = record(
  {
    memory_mib: optional(memoryMib('Host memory, without what its VRAM takes while it is swapped out')),
    cpus: optional(cpus('Processors')),
    pids_limit: optional(pidsLimit('Processes and threads')),
  },
  'Limits of the attempt on its host. Absent: none. Sent only to servers with this feature',
)
export type LimitsRecord = Value<typeof LIMITS_RECORD>

/** A task without limits has no such field, as in records of earlier versions. */
export function limitsIn(limits: ResourceLimits | null | undefined): { readonly limits?: ResourceLimits } {
  return limits === null || limits === undefined ? {} : { limits }
}

/** What a server says about an end for which the kernel killed a process of the task. */
export const MEMORY_LIMIT_REACHED =
  'it reached its limit of memory (memory_mib): the kernel killed a process of the task'

/**
 * The limit of memory that a server sets. NVIDIA's driver copies VRAM into the process at a swap-out, so the
 * process needs that much more. A task that is not swappable may become so while it runs.
 * @param vramMib on each of its GPUs
 */
export function memoryLimitMib(
  memory: Mib | null,
  device: DeviceKind,
  vramMib: Mib,
  gpuCount: number,
): Mib | null {
  return memory === null || device !== 'nvidia' ? memory : memory + vramMib * gpuCount
}

export function limitsOfBody(body: ResourceLimitsBody): ResourceLimits | null {
  const { memory_mib: memory = null, cpus: processors = null, pids_limit: pids = null } = body
  if (memory === null && processors === null && pids === null) return null
  return { memoryMib: memory, cpus: processors, pids }
}

export function limitsBodyOf(limits: ResourceLimits | null | undefined) {
  return {
    memory_mib: limits?.memoryMib ?? null,
    cpus: limits?.cpus ?? null,
    pids_limit: limits?.pids ?? null,
  }
}

/** Without what is not limited. */
export function limitsRecordOf({ memoryMib: memory, cpus: processors, pids }: ResourceLimits): LimitsRecord {
  return {
    ...(memory === null ? {} : { memory_mib: memory }),
    ...(processors === null ? {} : { cpus: processors }),
    ...(pids === null ? {} : { pids_limit: pids }),
  }
}

export function areSameLimits(
  some: ResourceLimits | null | undefined,
  others: ResourceLimits | null | undefined,
): boolean {
  const [one, other] = [limitsBodyOf(some), limitsBodyOf(others)]
  return one.memory_mib === other.memory_mib && one.cpus === other.cpus && one.pids_limit === other.pids_limit
}
