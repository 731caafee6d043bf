/**
 * A scenario as values, in the form of its file: drawn by the generator, cut by the shrinker, written to a
 * file.
 */

export type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value }

/** One entry of a list of the document. */
export type Entry = Readonly<Record<string, Value>>

/** The parts of a drawn scenario. Durations have a unit, sizes are in MiB. */
export interface FuzzDocument {
  readonly scenario: string
  readonly description: string
  readonly version: 1
  readonly seed: number
  readonly clock: Entry
  readonly fleet: readonly Entry[]
  readonly config: Entry
  readonly workload: readonly Entry[]
  readonly operator: readonly Entry[]
  readonly faults: readonly Entry[]
  readonly assert: Entry
}

/** The lists that a shrinker may cut, in the order to try. */
export const LISTS = ['faults', 'operator', 'workload', 'fleet'] as const
export type ListName = (typeof LISTS)[number]
