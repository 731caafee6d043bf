import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Mib } from '../../../protocol/units.ts'
import { mibTaken } from './snapshot.ts'

/** Facts about a process from the kernel that matter for checkpointing. */
export interface ProcessFacts {
  /** Its threads are stopped at arbitrary points, so it cannot be locked. */
  readonly isStopped: boolean
  /** Its pids in the PID namespaces nested in ours, ours first. */
  readonly pids: readonly number[]
}

/** Facts from its address space; null: not readable, or the process is gone. */
export interface MappedFacts {
  readonly hasCuda: boolean
  readonly hasNccl: boolean
  /** Readable and writable mappings of the unified-memory device. */
  readonly uvmMib: Mib
}

/** Null: there is no such process. */
export function processFacts(proc: string, pid: number): ProcessFacts | null {
  const status = read(join(proc, String(pid), 'status'))
  if (status === null) return null
  const nested = /^NSpid:\s*(.*)$/m.exec(status)?.[1]?.split(/\s+/).map(Number) ?? []
  return {
    isStopped: /^State:\s*[Tt]\b/m.test(status),
    pids:
      nested.length > 0 && nested.every((number) => Number.isInteger(number) && number > 0) ? nested : [pid],
  }
}

/** Returns the start time in clock ticks since boot; null: there is no such process, or it is a zombie. */
export function startTimeIn(proc: string, pid: number): number | null {
  const stat = read(join(proc, String(pid), 'stat'))
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? []
  const startTime = Number(fields[19])
  return /^[ZX]$/.test(fields[0] ?? 'X') || !Number.isInteger(startTime) ? null : startTime
}

/** Identifies this run of the kernel. */
export function bootIn(proc: string): string {
  return read(join(proc, 'sys/kernel/random/boot_id'))?.trim() ?? ''
}

export function mappedFacts(proc: string, pid: number): MappedFacts | null {
  const maps = read(join(proc, String(pid), 'maps'))
  if (maps === null) return null
  let uvmBytes = 0
  for (const [, from = '', to = ''] of maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw.*\s\/dev\/nvidia-uvm$/gm)) {
    uvmBytes += Number.parseInt(to, 16) - Number.parseInt(from, 16)
  }
  return {
    hasCuda: /\/libcuda\.so/.test(maps),
    hasNccl: /\/libnccl\.so/.test(maps),
    uvmMib: mibTaken(uvmBytes),
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
