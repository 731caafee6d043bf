import type { Mib } from '../../../protocol/units.ts'
import type { AcceleratedTask } from '../accelerator.ts'
import type { Checkpoints, ProcessState } from './checkpoints.ts'
import type { HelperFault } from './helper-messages.ts'
import { type MappedFacts, mappedFacts, processFacts } from './process-facts.ts'
import type { HostSnapshot } from './snapshot.ts'

/** Processes of one task that are looked at. */
const MAX_PROCESSES = 1024

/** A process that has initialized CUDA. */
export interface CudaProcess {
  readonly pid: number
  /** Null: the driver does not tell; `fault` says why. */
  readonly state: ProcessState | null
  readonly fault: HelperFault | null
  readonly isStopped: boolean
  readonly mapped: MappedFacts | null
  /**
   * MiB that it holds by GPU index; GPUs where it holds nothing, or the driver does not tell, are left out.
   */
  readonly heldMib: ReadonlyMap<number, Mib>
}

/**
 * Those of the task's processes that CUDA knows. The driver itself is asked only about processes that have
 * loaded its library; its answer for a process that has not called it yet is an error, which is how CRIU
 * tells them apart too.
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
