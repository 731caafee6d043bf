/** The parameters of the sweep form, from the URL: parsed, counted, and as a request body. */
import { createMemo } from 'solid-js'
import type { SweptFieldBody } from '../../../controller/api/simulations/scenario-schema.ts'
import {
  DEFAULT_OBJECTIVE,
  PERCENTS,
  readNumbers,
  readObjectives,
  runsText,
  SEEDS,
  tooMany,
  defaultPercents,
} from './grid.ts'
import { readValues, type Values } from './varied-fields.ts'

export interface SweepTexts {
  readonly percents?: string | undefined
  readonly seeds?: string | undefined
  readonly keep?: string | undefined
  /** Path of another field to vary. */
  readonly field?: string | undefined
  readonly values?: string | undefined
}

/**
 * @param swept by the scenario itself: a field chosen here replaces its values
 * @param current percentage of the live cluster; null: unknown
 */
export function createSweepRequest(
  search: SweepTexts,
  swept: () => readonly SweptFieldBody[],
  current: () => number | null,
) {
  const texts = () => ({
    percents: search.percents ?? defaultPercents(current()),
    seeds: search.seeds ?? '1..3',
    keep: search.keep ?? DEFAULT_OBJECTIVE,
  })
  const field = (): string => search.field ?? ''
  const percents = createMemo(() => readNumbers(texts().percents, PERCENTS))
  const seeds = createMemo(() => readNumbers(texts().seeds, SEEDS))
  const values = createMemo((): Values | null => (field() === '' ? null : readValues(search.values ?? '')))
  const read = () => {
    const [a, b, c] = [percents(), seeds(), values()]
    return a.ok && b.ok && c?.ok !== false
      ? { percents: a.values, seeds: b.values, values: c === null ? null : c.values }
      : null
  }
  const counts = () => {
    const known = read()
    if (known === null) return null
    const others = [
      ...swept().filter((each) => each.field !== field()),
      ...(known.values === null ? [] : [{ field: field(), values: known.values.length }]),
    ]
    return { percents: known.percents.length, seeds: known.seeds.length, others }
  }
  return {
    texts,
    field,
    valuesText: (): string => search.values ?? '',
    problems: () => ({ percents: whyNot(percents()), seeds: whyNot(seeds()), values: whyNot(values()) }),
    /** Why the sweep cannot be requested; null: it can. */
    whyNot: (): string | null => {
      const known = counts()
      return known === null ? (whyNot(percents()) ?? whyNot(seeds()) ?? whyNot(values())) : tooMany(known)
    },
    /** `5 percentages × 3 seeds × 2 values of fleet.0.count = 30 runs`; empty if a value is invalid. */
    runs: (): string => {
      const known = counts()
      return known === null ? '' : runsText(known)
    },
    /** Request body; null if a value is invalid. */
    body: () => {
      const known = read()
      if (known === null) return null
      return {
        overcommit_percents: known.percents,
        seeds: known.seeds,
        objectives: readObjectives(texts().keep),
        ...(known.values === null ? {} : { fields: { [field()]: known.values } }),
      }
    },
  }
}

function whyNot(
  read: { readonly ok: true } | { readonly ok: false; readonly why: string } | null,
): string | null {
  return read === null || read.ok ? null : read.why
}
