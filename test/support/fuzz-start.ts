/** The first seed of a fuzz run: different in every run, so that every run covers new seeds. */
import { randomInt } from 'node:crypto'

/** Leaves space below 2^32 for the seeds of one run. */
export const MAX_FUZZ_START = 4_284_000_000

/** @param env HEADROOM_FUZZ_FROM repeats a run. Throws if it is not a valid seed. */
export function fuzzStart(env: Readonly<Record<string, string | undefined>>): number {
  const given = env['HEADROOM_FUZZ_FROM'] ?? ''
  if (given === '') return randomInt(0, MAX_FUZZ_START)
  const from = /^\d{1,10}$/.test(given) ? Number(given) : NaN
  if (from <= MAX_FUZZ_START) return from
  throw new Error(
    `HEADROOM_FUZZ_FROM is ${JSON.stringify(given)}; it must be a whole number from 0 to ${MAX_FUZZ_START}`,
  )
}
