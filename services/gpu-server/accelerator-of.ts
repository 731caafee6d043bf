import { totalmem } from 'node:os'
import type { Clock } from '../../controller/ports/clock.ts'
import type { Accelerator } from '../../gpu-server/devices/accelerator.ts'
import type { ArenaPlace } from '../../gpu-server/devices/nvidia/swap-arena.ts'
import { NvidiaAccelerator } from '../../gpu-server/devices/nvidia/nvidia-accelerator.ts'
import { ProcessAccelerator } from '../../gpu-server/devices/process-accelerator.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import { UsageError } from '../exit-codes.ts'
import { readInventory } from './inventory.ts'

export interface DeviceChoice {
  readonly device: 'auto' | 'nvidia' | 'process'
  /** A file that declares the GPUs of the device `process`. */
  readonly inventory?: string
}

const BYTES_PER_MIB = 1024 * 1024

/**
 * The GPUs of this host, and the host memory for swapped-out tasks by default.
 * @param arena where NVIDIA GPUs keep what is swapped out; without it the driver keeps it
 * @throws UsageError
 */
export function acceleratorOf(
  { device, inventory }: DeviceChoice,
  clock: Clock,
  onNote: (line: string) => void,
  arena?: ArenaPlace,
): { readonly accelerator: Accelerator; readonly hostSwapMib: Mib } {
  const isProcess = device === 'process' || (device === 'auto' && inventory !== undefined)
  if (!isProcess) {
    if (inventory !== undefined) throw new UsageError('--inventory declares GPUs of --device process')
    const hostSwapMib = Math.floor(totalmem() / BYTES_PER_MIB / 2)
    const options = arena === undefined ? { onNote } : { onNote, arena }
    return { accelerator: new NvidiaAccelerator(options), hostSwapMib }
  }
  if (arena !== undefined && arena.bytes > 0) throw new UsageError('--swap-arena requires NVIDIA GPUs')
  if (inventory === undefined)
    throw new UsageError('--device process requires --inventory FILE, which declares its GPUs')
  const { gpus, hostSwapMib } = readInventory(inventory)
  const wait = (ms: DurationMs): Promise<void> =>
    new Promise((done) => {
      clock.at(clock.now() + ms, done)
    })
  return { accelerator: new ProcessAccelerator({ gpus, now: () => clock.now(), wait }), hostSwapMib }
}
