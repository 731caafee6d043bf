import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Mib } from '../../../protocol/units.ts'
import { mibThere } from './snapshot.ts'

/** Paths of kernel file systems; other folders in tests. */
export interface KernelFiles {
  /** /proc */
  readonly proc: string
  /** /sys/fs/cgroup */
  readonly cgroup: string
}

/** Maximum depth of the cgroup tree. */
const MAX_CGROUP_DEPTH = 64
/** cgroup v1 expresses "no limit" as a number near 2^63. */
const NO_LIMIT_BYTES = 2 ** 60

/**
 * Returns the MiB of host memory that this process can take before the host or one of its cgroups runs out:
 * the driver copies GPU memory into memory of the process itself. Null when unknown.
 */
export function hostMemoryLeft(files: KernelFiles, pid: number): Mib | null {
  const available = /^MemAvailable:\s+(\d+) kB$/m.exec(read(join(files.proc, 'meminfo')) ?? '')?.[1]
  if (available === undefined) return null
  const left = [Number(available) * 1024, ...cgroupLeft(files, pid)]
  return Math.max(0, mibThere(left.reduce((least, bytes) => Math.min(least, bytes))))
}

/**
 * Returns the bytes left in each limited cgroup of the process, ancestors included; cgroup version 2 and 1.
 */
function cgroupLeft(files: KernelFiles, pid: number): number[] {
  const lines = (read(join(files.proc, String(pid), 'cgroup')) ?? '').split('\n')
  return lines.flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
    if (path === undefined || controllers === undefined) return []
    if (controllers === '') return ancestors(path).flatMap((folder) => unified(join(files.cgroup, folder)))
    if (controllers.split(',').includes('memory'))
      return ancestors(path).flatMap((folder) => legacy(join(files.cgroup, 'memory', folder)))
    return []
  })
}

/** A path outside the visible tree (`/..`) means the root of the visible tree. */
function ancestors(path: string): string[] {
  const found = ['/']
  if (path.startsWith('/..')) return found
  for (let folder = path; folder !== '/' && found.length < MAX_CGROUP_DEPTH; folder = dirname(folder))
    found.push(folder)
  return found
}

function unified(folder: string): number[] {
  return left(
    read(join(folder, 'memory.max')),
    read(join(folder, 'memory.current')),
    read(join(folder, 'memory.stat')),
    'inactive_file',
  )
}

function legacy(folder: string): number[] {
  const limit = read(join(folder, 'memory.limit_in_bytes'))
  return left(
    limit,
    read(join(folder, 'memory.usage_in_bytes')),
    read(join(folder, 'memory.stat')),
    'total_inactive_file',
  )
}

/** Unused file pages are reclaimable, so they count as left. */
function left(
  limit: string | null,
  usage: string | null,
  stat: string | null,
  reclaimable: string,
): number[] {
  const bytes = Number(limit?.trim())
  const used = Number(usage?.trim())
  if (
    limit === null ||
    usage === null ||
    !Number.isFinite(bytes) ||
    !Number.isFinite(used) ||
    bytes >= NO_LIMIT_BYTES
  )
    return []
  const cached = Number(new RegExp(`^${reclaimable} (\\d+)$`, 'm').exec(stat ?? '')?.[1] ?? 0)
  return [bytes - Math.max(0, used - cached)]
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
