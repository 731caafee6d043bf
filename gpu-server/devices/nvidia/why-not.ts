import type { CudaProcess } from './cuda-processes.ts'
import type { GpuSnapshot } from './snapshot.ts'
import type { Mib } from '../../../protocol/units.ts'

/** The first driver with the checkpoint functions in libcuda and a lock that can time out. */
const FIRST_DRIVER = 570
/**
 * CUDA's own mappings of the unified-memory device are small; a program's managed allocations are not. An
 * estimate, see docs/gpu-server.md.
 */
const MAX_UVM_MIB: Mib = 64

/** Returns null, or why nothing can be swapped with this driver. */
export function whyNotDriver(version: string): string | null {
  const major = Number(/^(\d+)\./.exec(version)?.[1])
  if (Number.isNaN(major))
    return (
      `the driver version ${JSON.stringify(version)} cannot be read; checkpoints need ${FIRST_DRIVER} or ` +
      'newer'
    )
  return major < FIRST_DRIVER
    ? `driver ${version} is older than ${FIRST_DRIVER}, the first with the checkpoint API`
    : null
}

export function whyNotGpus(gpus: readonly (GpuSnapshot | undefined)[]): string | null {
  const mig = gpus.find((gpu) => gpu?.isMig === true)
  return mig === undefined ? null : `GPU ${mig.index} is in MIG mode, which the driver cannot checkpoint`
}

/**
 * 1. Several processes hold GPU memory: a held process blocks the others (NCCL), and shared memory cannot be
 *    copied.
 * 2. One process spans GPUs with NCCL loaded.
 * 3. Managed memory, as far as it is visible.
 * 4. The driver does not report the state of the process, or has lost it.
 */
export function whyNotProcesses(processes: readonly CudaProcess[], gpuCount: number): string | null {
  const hasNccl = processes.some(({ mapped }) => mapped?.hasNccl === true)
  if (processes.length > 1) {
    const pids = processes.map(({ pid }) => pid).join(', ')
    return hasNccl
      ? `${processes.length} processes use GPUs with NCCL (${pids}), which the driver cannot checkpoint`
      : `${processes.length} processes use GPUs (${pids}); memory that they share cannot be checkpointed`
  }
  const [process] = processes
  if (process === undefined) return null
  if (hasNccl && gpuCount > 1)
    return `process ${process.pid} uses ${gpuCount} GPUs with NCCL, which the driver cannot checkpoint`
  const uvmMib = process.mapped?.uvmMib ?? 0
  if (uvmMib > MAX_UVM_MIB)
    return (
      `process ${process.pid} has ${uvmMib} MiB of managed memory (UVM), which the driver cannot ` +
      'checkpoint'
    )
  if (process.fault !== null) return `process ${process.pid}: ${process.fault.message}`
  switch (process.state) {
    case 'failed':
      return `process ${process.pid} was lost by the driver during an earlier checkpoint`
    case null:
      return `the driver does not report the state of process ${process.pid}`
    case 'running':
    case 'locked':
    case 'checkpointed':
    case 'moving':
      return null
  }
}
