/** The file in which a `process` server declares its GPUs: YAML or JSON, errors with line and column. */
import { readFileSync, statSync } from 'node:fs'
import type { DeclaredGpu } from '../../gpu-server/devices/process-accelerator.ts'
import type { Mib } from '../../protocol/units.ts'
import { swapDurationMs } from '../../simulator/scenario/swap-profiles.ts'
import { swapProfileOf } from '../../simulator/scenario/build-fleet.ts'
import { check } from '../../simulator/document/check.ts'
import { parseDocument } from '../../simulator/document/document.ts'
import { list, nullable, optional, record, required, size, text } from '../../simulator/document/rule.ts'
import { MAX_GPUS_PER_NODE, swapRule } from '../../simulator/scenario/schema-fleet.ts'
import { MAX_HOST_MIB, MAX_VRAM_MIB } from '../../protocol/limits.ts'
import { UsageError } from '../exit-codes.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface Inventory {
  readonly gpus: readonly DeclaredGpu[]
  /** Total host memory for swapped-out tasks. */
  readonly hostSwapMib: Mib
}

const MAX_FILE_BYTES = 64 * 1024

const inventoryRule = record({
  gpus: required(
    list(
      record({
        model: optional(text(200), 'declared', 'For display only; decisions do not use it.'),
        vram_mib: required(size(1, MAX_VRAM_MIB), 'VRAM of the GPU, including the reserve.'),
        swap: optional(swapRule, 'stock-driver', 'Duration of swaps: the name of a profile, or its values.'),
      }),
      1,
      MAX_GPUS_PER_NODE,
    ),
    'One entry for each GPU, in the order of their indexes.',
  ),
  host_swap_mib: optional(
    nullable(size(0, MAX_HOST_MIB)),
    null,
    'Host memory for swapped-out bytes; null is twice the VRAM.',
  ),
})

/** @throws UsageError when it cannot be read, ScenarioError with all problems in it */
export function readInventory(file: string): Inventory {
  const { root, problems } = parseDocument(textOf(file))
  if (root === null) throw problems.toError(file)
  const inventory = check(root, inventoryRule, problems)
  problems.throwIfAny(file)
  const { gpus, host_swap_mib } = inventory
  const vramMib = gpus.reduce((sum, gpu) => sum + gpu.vram_mib, 0)
  return {
    gpus: gpus.map((gpu) => {
      const profile = swapProfileOf(gpu.swap)
      return {
        model: gpu.model,
        physicalMib: gpu.vram_mib,
        swapMs: (direction, mib) => swapDurationMs(profile, direction, mib),
      }
    }),
    hostSwapMib: host_swap_mib ?? 2 * vramMib,
  }
}

function textOf(file: string): string {
  try {
    if (statSync(file).size > MAX_FILE_BYTES) throw new Error(`more than ${MAX_FILE_BYTES} bytes`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file}: cannot be read: ${errorText(error)}`)
  }
}
