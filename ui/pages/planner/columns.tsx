/** Columns shared by tables of the planner: the varied fields, and the objectives with their results. */
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
        <th scope="col" class="number" title="At most this in 95% of the seeds">
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
            what="Some runs have no such metric."
          />
        </td>
      )}
    </For>
  )
}
