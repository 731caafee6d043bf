/** Phrases shared by sentences about tasks and GPUs. */
import { grouped } from '../../protocol/grouped-digits.ts'
import type { Instant, Mib, SwapMethod } from '../../protocol/units.ts'
import type { Gpu } from './placement.ts'

/** `GPU 0, 3 of a100-2`. */
export function gpusInWords(gpus: readonly Gpu[]): string {
  return `GPU ${gpus.map((gpu) => gpu.index).join(', ')} of ${gpus[0]?.node.name ?? 'no node'}`
}

/** Maximum number of names in a sentence; the others are counted. */
export const MAX_NAMES = 3

/**
 * `a, b, c and 4 more`.
 * @param count of all; the names may be the first of them
 */
export function namesInWords(names: readonly string[], count: number = names.length): string {
  const more = count - Math.min(names.length, MAX_NAMES)
  return `${names.slice(0, MAX_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** `5 s`: a second that has begun counts. */
export function secondsUntil(at: Instant, now: Instant): string {
  return `${Math.ceil((at - now) / 1000)} s`
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
