import type { Mib } from '../../../protocol/units.ts'
import type { AcceleratedTask } from '../accelerator.ts'
import type { Checkpoints, ProcessState } from './checkpoints.ts'
import type { HelperFault } from './helper-messages.ts'
import { type MappedFacts, mappedFacts, processFacts } from './process-facts.ts'
import type { HostSnapshot } from './snapshot.ts'

/** Maximum number of processes inspected per task. */
const MAX_PROCESSES = 1024

/** A process that has initialized CUDA. */
export interface CudaProcess {
  readonly pid: number
  /** Null: the driver does not report it; `fault` says why. */
  readonly state: ProcessState | null
  readonly fault: HelperFault | null
  readonly isStopped: boolean
  readonly mapped: MappedFacts | null
  /** MiB in use by GPU index; without GPUs where it is zero or unknown. */
  readonly heldMib: ReadonlyMap<number, Mib>
}

/**
 * Returns the task's processes that CUDA knows. The driver is queried only about processes that have loaded
 * its library. It returns an error for a process that has not called it yet, which CRIU uses in the same way.
 */
export async function cudaProcesses(
  task: AcceleratedTask,
  checkpoints: Checkpoints,
  snapshot: HostSnapshot | null,
  proc: string,
): Promise<readonly CudaProcess[]> {
  const found: CudaProcess[] = []
  for (const pid of task.processIds().slice(0, MAX_PROCESSES)) {
    const facts = processFacts(proc, pid)
    const mapped = mappedFacts(proc, pid)
    if (facts === null || mapped?.hasCuda === false) continue
    const heldMib = held(snapshot, facts.pids)
    const fault = await checkpoints.probe(pid)
    if (fault !== null && fault.kind === 'driver' && heldMib.size === 0) continue
    const state = fault === null ? await checkpoints.state(pid) : null
    found.push({ pid, state, fault, isStopped: facts.isStopped, mapped, heldMib })
  }
  return found
}

export function held(snapshot: HostSnapshot | null, pids: readonly number[]): ReadonlyMap<number, Mib> {
  return new Map(
    (snapshot?.gpus ?? []).flatMap(({ index, processes }) => {
      const used = processes?.find(({ pid }) => pid === pids[0])?.usedMib ?? 0
      return used > 0 ? [[index, used] as const] : []
    }),
  )
}
