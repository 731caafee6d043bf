/**
 * A scenario as its file has it, in values: what the generator makes, the shrinker cuts and a file is written
 * from.
 */

export type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value }

/** One entry of a list of the document. */
export type Entry = Readonly<Record<string, Value>>

/** The parts of a scenario file that a drawn one has. Durations are written with their unit, sizes in MiB. */
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

/** The lists that a shrinker may cut, in the order in which it should try. */
export const LISTS = ['faults', 'operator', 'workload', 'fleet'] as const
export type ListName = (typeof LISTS)[number]
