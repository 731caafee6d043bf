import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Mib } from '../../../protocol/units.ts'
import { mibTaken } from './snapshot.ts'

/** What the kernel tells of a process that matters for checkpointing. */
export interface ProcessFacts {
  /** It stands still, its threads in the middle of whatever they do: it cannot be locked. */
  readonly isStopped: boolean
  /** Its numbers in the PID namespaces nested in ours, ours first. */
  readonly pids: readonly number[]
}

/** What its address space shows; null: it may not be read, or the process has gone. */
export interface MappedFacts {
  readonly hasCuda: boolean
  readonly hasNccl: boolean
  /** Of the device of unified memory, as far as it can be read and written. */
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
