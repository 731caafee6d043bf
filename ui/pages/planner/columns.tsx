/**
 * Columns that several tables of the planner have: the fields that a sweep varies, and the objectives with
 * how they were judged.
 */
import { For, type JSX } from 'solid-js'
import type { CandidateBody } from '../../../controller/api/schema/sweep-report.ts'
import { Figure } from './field.tsx'
import { objectiveWords } from './figures.ts'

export function FieldHeads(props: { readonly fields: readonly string[] }): JSX.Element {
  return (
    <For each={props.fields}>
      {(field) => (
        <th scope="col" class="number">
          <code>{field}</code>
        </th>
      )}
    </For>
  )
}

export function JudgedHeads(props: { readonly objectives: readonly string[] }): JSX.Element {
  return (
    <For each={props.objectives}>
      {(objective) => (
        <th scope="col" class="number" title="In 95 of 100 seeds it is at most this">
          {objective}
        </th>
      )}
    </For>
  )
}

export function JudgedCells(props: {
  readonly objectives: CandidateBody['objectives'] | undefined
}): JSX.Element {
  return (
    <For each={props.objectives}>
      {(judged) => (
        <td class={judged.keeps ? 'number good' : 'number bad'}>
          {judged.keeps ? 'kept' : 'broken'}:{' '}
          <Figure
            value={judged.p95}
            shown={objectiveWords(judged.objective, judged.p95)}
            what="Some run has no such figure."
          />
        </td>
      )}
    </For>
  )
}
