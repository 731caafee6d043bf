import type { Mib } from '../../../protocol/units.ts'

/** The driver's report about one host at one time; by NVML, or in part by nvidia-smi. */
export interface HostSnapshot {
  /** Example: `570.86.15`. */
  readonly driver: string
  /** In the order of their indexes, from 0 without gaps: the order of their PCI addresses. */
  readonly gpus: readonly GpuSnapshot[]
}

export interface GpuSnapshot {
  readonly index: number
  /** `GPU-…`; null while the GPU cannot be read. */
  readonly uuid: string | null
  readonly model: string
  /** Null: could not be read. */
  readonly memory: GpuMemory | null
  readonly isMig: boolean
  /** Share of the last sample period (1/6 to 1 s) in which a kernel ran. */
  readonly utilizationPercent: number | null
  /** Processes with memory on it; null: could not be read. */
  readonly processes: readonly ProcessMemory[] | null
  /** Processes that ran a kernel since the last sample; null where not reported or not read. */
  readonly busyPids: readonly number[] | null
  /** Why a value above is null, one line each. */
  readonly faults: readonly string[]
}

export interface GpuMemory {
  /** Without the driver's own share, where it is reported. */
  readonly physicalMib: Mib
  readonly freeMib: Mib
}

export interface ProcessMemory {
  readonly pid: number
  /** Null: not reported by the driver. */
  readonly usedMib: Mib | null
}

const BYTES_PER_MIB = 1024 * 1024

/** Rounds down: available memory. */
export function mibThere(bytes: number): Mib {
  return Math.floor(bytes / BYTES_PER_MIB)
}

/** Rounds up: used memory. */
export function mibTaken(bytes: number): Mib {
  return Math.ceil(bytes / BYTES_PER_MIB)
}
