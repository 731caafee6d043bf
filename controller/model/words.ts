/** Phrases shared by sentences about tasks and GPUs. */
import { grouped } from '../../protocol/grouped-digits.ts'
import type { Mib, SwapMethod } from '../../protocol/units.ts'
import type { Gpu } from './placement.ts'

/** `GPU 0, 3 of a100-2`. */
export function gpusInWords(gpus: readonly Gpu[]): string {
  return `GPU ${gpus.map((gpu) => gpu.index).join(', ')} of ${gpus[0]?.node.name ?? 'no node'}`
}

/** `7,285 MiB`: exact, with grouped digits; negative sizes are 0. */
export function inMib(mib: Mib | null | undefined): string {
  return mib === null || mib === undefined ? 'nothing' : `${grouped(Math.max(0, mib))} MiB`
}

/** What moves the VRAM of a task, by its swap method. */
export const MOVERS: Readonly<Record<SwapMethod, string>> = {
  driver: 'the driver',
  hooks: 'its hooks',
  engine: 'its inference engine',
}
