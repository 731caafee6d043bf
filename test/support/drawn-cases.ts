/**
 * Properties over drawn cases: other cases in every run of the tests, so that many runs cover what one run
 * with many cases would.
 */
import { randomInt } from 'node:crypto'
import fc from 'fast-check'

const MAX_SEED = 2 ** 31 - 1
/** HEADROOM_SEED repeats a run. */
export const RUN_SEED = Number(process.env['HEADROOM_SEED'] ?? randomInt(0, MAX_SEED))
/** HEADROOM_RUNS multiplies the number of cases. */
const FACTOR = Number(process.env['HEADROOM_RUNS'] ?? 1)

/** Fails with the seed, the smallest counterexample, and the command that repeats it. */
export function holds<T extends unknown[]>(property: fc.IProperty<T>, numRuns: number, file: string): void {
  reportOf(fc.check(property, { seed: RUN_SEED, numRuns: numRuns * FACTOR }), file)
}

/**
 * @param how `endOnFailure`: shrinking a counterexample that hangs would take hours; `seed`: of cases among
 * which something certain must occur
 */
export async function holdsInTime<T extends unknown[]>(
  property: fc.IAsyncProperty<T>,
  numRuns: number,
  file: string,
  how: { readonly endOnFailure?: boolean; readonly seed?: number } = {},
): Promise<void> {
  reportOf(await fc.check(property, { seed: RUN_SEED, ...how, numRuns: numRuns * FACTOR }), file)
}

function reportOf<T>(details: fc.RunDetails<T>, file: string): void {
  if (!details.failed) return
  const repeat = `HEADROOM_SEED=${RUN_SEED} HEADROOM_RUNS=${FACTOR} node_modules/.bin/vitest run ${file}`
  throw new Error(`${fc.defaultReportMessage(details)}\nrepeat: ${repeat}`, { cause: details.errorInstance })
}
