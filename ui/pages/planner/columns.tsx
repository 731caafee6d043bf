/**
 * Columns shared by tables of the planner: figures, the varied fields, and the objectives with their results.
 */
import { Show } from 'solid-js'
import type { CandidateBody, SettingsBody } from '../../../controller/api/simulations/sweep-report-schema.ts'
import type { Column } from '../../design/table.tsx'
import { Figure } from './field.tsx'
import { objectiveWords } from './figures.ts'

/** @param what reason for a missing value */
export function figureColumn<R>(
  name: string,
  valueOf: (row: R) => number | null | undefined,
  shown: (value: number | null) => string,
  what?: string,
): Column<R> {
  return {
    name,
    isNumber: true,
    cell: (row) => {
      const value = valueOf(row()) ?? null
      return <Figure value={value} shown={shown(value)} what={what} />
    },
  }
}

export function fieldColumns<R extends { readonly settings: SettingsBody }>(
  row: R | undefined,
): readonly Column<R>[] {
  return Object.keys(row?.settings ?? {}).map((field) => ({
    name: field,
    nameAs: 'code',
    isNumber: true,
    cell: (each) => String(each().settings[field]),
  }))
}

export function objectiveColumns<R>(
  objectives: readonly string[],
  candidateOf: (row: R) => CandidateBody | undefined,
): readonly Column<R>[] {
  return objectives.map((name, at) => ({
    name,
    help: '95th percentile over the seeds',
    isNumber: true,
    cell: (row) => (
      <Show when={candidateOf(row())?.objectives[at]}>
        {(judged) => (
          <span class={judged().keeps ? 'good' : 'bad'}>
            {judged().keeps ? 'met' : 'not met'}:{' '}
            <Figure
              value={judged().p95}
              shown={objectiveWords(judged().objective, judged().p95)}
              what="Some runs do not have this metric."
            />
          </span>
        )}
      </Show>
    ),
  }))
}
