import type { Mib } from '../../protocol/units.ts'
import type { GpuReport } from '../../protocol/messages.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'

/**
 * The GPUs of a node as a driver describes them.
 * @param foreignMib VRAM used by others, by GPU; absent: none
 */
export function gpuReports(
  { gpuCount, gpu }: ScenarioNode,
  foreignMib: ReadonlyMap<number, Mib>,
): GpuReport[] {
  const { model, vramMib } = gpu
  return Array.from({ length: gpuCount }, (_, index) => ({
    index,
    model,
    physical_mib: vramMib,
    foreign_mib: foreignMib.get(index) ?? 0,
  }))
}
