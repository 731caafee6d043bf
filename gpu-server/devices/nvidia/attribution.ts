import type { Mib } from '../../../protocol/units.ts'
import type { TaskUse } from '../accelerator.ts'
import type { GpuSnapshot, HostSnapshot, ProcessMemory } from './snapshot.ts'

/** The fields of a task that attribution needs. */
export interface Owner<T> {
  readonly task: T
  readonly gpus: readonly number[]
  /** Each process by its pids in the nested PID namespaces, ours first. */
  readonly processes: readonly (readonly number[])[]
}

export interface Attribution<T> {
  readonly uses: ReadonlyMap<T, TaskUse>
  /** By GPU index: memory of processes without a task; 0 where the driver does not list holders. */
  readonly foreignMib: readonly Mib[]
}

/**
 * Attributes memory and work that the driver reports to tasks.
 * @param isInOurNamespace true if such a process exists here
 * @param departed processes that belonged to a task a moment ago; what they still hold is about to be freed
 * and is not foreign
 */
export function attribute<T>(
  snapshot: HostSnapshot,
  owners: readonly Owner<T>[],
  isInOurNamespace: (pid: number) => boolean,
  departed: ReadonlySet<number>,
): Attribution<T> {
  const ownerOf = ownersByPid(owners, isInOurNamespace)
  return {
    uses: new Map(
      owners.map((owner) => [
        owner.task,
        {
          usedMib: owner.gpus.map((gpu) => usedBy(snapshot.gpus[gpu], owner, ownerOf)),
          isBusy: isBusy(owner.gpus.map((gpu) => isBusyOn(snapshot.gpus[gpu], owner, ownerOf))),
        },
      ]),
    ),
    foreignMib: snapshot.gpus.map((gpu) => foreignOn(gpu, ownerOf, departed)),
  }
}

type OwnerOf<T> = ReadonlyMap<number, Owner<T>>

/**
 * The driver names a process by its pid here, or, inside a container, by a pid of a namespace that may not be
 * ours.
 * 1. A pid that a task's process has here.
 * 2. A pid that it has in a nested namespace, when only one task has such a process and that pid does not
 *    exist here.
 */
function ownersByPid<T>(owners: readonly Owner<T>[], isInOurNamespace: (pid: number) => boolean): OwnerOf<T> {
  const byPid = new Map<number, Owner<T>>()
  const nested = new Map<number, Owner<T> | null>()
  for (const owner of owners) {
    for (const [here, ...inside] of owner.processes) {
      if (here !== undefined) byPid.set(here, owner)
      for (const pid of inside) nested.set(pid, nested.has(pid) && nested.get(pid) !== owner ? null : owner)
    }
  }
  for (const [pid, owner] of nested) {
    if (owner !== null && !byPid.has(pid) && !isInOurNamespace(pid)) byPid.set(pid, owner)
  }
  return byPid
}

/** Null: the driver does not report it. */
function usedBy<T>(gpu: GpuSnapshot | undefined, owner: Owner<T>, ownerOf: OwnerOf<T>): Mib | null {
  if (gpu === undefined || gpu.processes === null) return null
  return sum(gpu.processes.filter(({ pid }) => ownerOf.get(pid) === owner))
}

function foreignOn<T>(gpu: GpuSnapshot, ownerOf: OwnerOf<T>, departed: ReadonlySet<number>): Mib {
  if (gpu.processes === null) return 0
  const isOwned = ({ pid }: ProcessMemory): boolean =>
    ownerOf.get(pid)?.gpus.includes(gpu.index) ?? departed.has(pid)
  const foreign = gpu.processes.filter((process) => !isOwned(process))
  const known = sum(foreign)
  if (known !== null) return known
  const owned = sum(gpu.processes.filter(isOwned))
  const atLeast = sum(foreign.filter(({ usedMib }) => usedMib !== null)) ?? 0
  if (gpu.memory === null || owned === null) return atLeast
  return Math.max(atLeast, gpu.memory.physicalMib - gpu.memory.freeMib - owned)
}

/** Null when one of them is unknown. */
function sum(processes: readonly ProcessMemory[]): Mib | null {
  return processes.reduce<Mib | null>(
    (total, { usedMib }) => (total === null || usedMib === null ? null : total + usedMib),
    0,
  )
}

/** Null: unknown; the work may be another process's. */
function isBusyOn<T>(gpu: GpuSnapshot | undefined, owner: Owner<T>, ownerOf: OwnerOf<T>): boolean | null {
  if (gpu === undefined) return null
  if (gpu.busyPids !== null) return gpu.busyPids.some((pid) => ownerOf.get(pid) === owner)
  if (gpu.utilizationPercent === null || gpu.processes === null) return null
  const isThere = gpu.processes.some(({ pid }) => ownerOf.get(pid) === owner)
  if (gpu.utilizationPercent === 0 || !isThere) return false
  const isAlone = gpu.processes.every(({ pid }) => ownerOf.get(pid) === owner)
  return isAlone ? true : null
}

function isBusy(onEach: readonly (boolean | null)[]): boolean | null {
  if (onEach.includes(true)) return true
  return onEach.includes(null) ? null : false
}
