/** Limits of a task for its host and its GPUs. */
import { integer, optional, record } from './fields.ts'
import type { Value } from './fields.ts'
import { MAX_CPUS, MAX_HOST_MIB, MAX_PIDS, MAX_VRAM_MIB, MIN_MEMORY_MIB, MIN_PIDS } from './limits.ts'
import type { DeviceKind, Mib } from './units.ts'

/** Null: no limit of its own. */
export interface ResourceLimits {
  readonly memoryMib: Mib | null
  readonly cpus: number | null
  /** Processes and threads. */
  readonly pids: number | null
  /** VRAM on each GPU. Absent in older records. */
  readonly vramMib?: Mib | null
}

/** Each field of the body of a request; the task then has none, or any of them. */
export interface ResourceLimitsBody {
  readonly memory_mib?: Mib | null | undefined
  readonly cpus?: number | null | undefined
  readonly pids_limit?: number | null | undefined
  readonly vram_limit_mib?: Mib | null | undefined
}

/** The fields of a request that limit a command. */
export const LIMIT_FIELDS = ['memory_mib', 'cpus', 'pids_limit', 'vram_limit_mib'] as const

export const memoryMib = (description: string) => integer(MIN_MEMORY_MIB, MAX_HOST_MIB, description)
export const cpus = (description: string) => integer(1, MAX_CPUS, description)
export const pidsLimit = (description: string) => integer(MIN_PIDS, MAX_PIDS, description)
export const vramLimitMib = (description: string) => integer(1, MAX_VRAM_MIB, description)

/** Limits in a start command. */
export const LIMITS_RECORD = record(
  {
    memory_mib: optional(memoryMib('Host memory, without what its VRAM takes while it is swapped out')),
    cpus: optional(cpus('Processors')),
    pids_limit: optional(pidsLimit('Processes and threads')),
    vram_limit_mib: optional(
      vramLimitMib(
        'VRAM on each GPU. Sent only to servers with the feature vram_limit, which end it above that',
      ),
    ),
  },
  'Limits of the attempt. Absent: none. Those of the host are sent only to servers with the feature limits',
)
export type LimitsRecord = Value<typeof LIMITS_RECORD>

/** A task without limits has no such field, as in records of earlier versions. */
export function limitsIn(limits: ResourceLimits | null | undefined): { readonly limits?: ResourceLimits } {
  return limits === null || limits === undefined ? {} : { limits }
}

/** The reason in a server's report if the kernel killed a process of the task for its memory. */
export const MEMORY_LIMIT_REACHED =
  'it reached its limit of memory (memory_mib): the kernel killed a process of the task'

/** Begins what a server says about an end because of the limit of VRAM. */
export const VRAM_LIMIT_EXCEEDED = 'VRAM_LIMIT_EXCEEDED'

export function vramLimitWords(usedMib: Mib, limitMib: Mib): string {
  return (
    `${VRAM_LIMIT_EXCEEDED}: it used ${usedMib} MiB of VRAM on a GPU, and its limit (vram_limit_mib) is ` +
    `${limitMib} MiB`
  )
}

/** Whether the host has to limit the processes. */
export function hasHostLimits({ memoryMib: memory, cpus: processors, pids }: ResourceLimits): boolean {
  return memory !== null || processors !== null || pids !== null
}

/** Why the limit of VRAM is too low for the demand, or null. @param demandMib null: whole GPUs */
export function faultInVramLimit(demandMib: Mib | null, limitMib: Mib | null): string | null {
  if (demandMib === null || limitMib === null || limitMib >= demandMib) return null
  return `must be at least vram_mib, ${demandMib}`
}

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
  const vram = body.vram_limit_mib ?? null
  if (memory === null && processors === null && pids === null && vram === null) return null
  return { memoryMib: memory, cpus: processors, pids, ...(vram === null ? {} : { vramMib: vram }) }
}

export function limitsBodyOf(limits: ResourceLimits | null | undefined) {
  return {
    memory_mib: limits?.memoryMib ?? null,
    cpus: limits?.cpus ?? null,
    pids_limit: limits?.pids ?? null,
    vram_limit_mib: limits?.vramMib ?? null,
  }
}

/** Without what is not limited. */
export function limitsRecordOf(limits: ResourceLimits): LimitsRecord {
  const { memoryMib: memory, cpus: processors, pids, vramMib: vram = null } = limits
  return {
    ...(memory === null ? {} : { memory_mib: memory }),
    ...(processors === null ? {} : { cpus: processors }),
    ...(pids === null ? {} : { pids_limit: pids }),
    ...(vram === null ? {} : { vram_limit_mib: vram }),
  }
}

export function areSameLimits(
  some: ResourceLimits | null | undefined,
  others: ResourceLimits | null | undefined,
): boolean {
  const [one, other] = [limitsBodyOf(some), limitsBodyOf(others)]
  return LIMIT_FIELDS.every((field) => one[field] === other[field])
}
