/**
 * The result of an exercise: points with their reasons, and the user's actions next to the reference
 * solution.
 */
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { DebriefBody } from '../../../controller/api/schema/exercise.ts'
import { Prose } from '../../components/prose.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { useSessionControl } from './session-control.ts'
import { figuresOf } from './figures.ts'
import { Replay } from './replay.tsx'

export function Debrief(): JSX.Element {
  const control = useSessionControl()
  const debrief = useQuery(() => ({
    queryKey: ['debrief', control.id],
    queryFn: ({ signal }: { signal: AbortSignal }) => control.api.get<DebriefBody>('/report', {}, signal),
    staleTime: Infinity,
  }))
  return (
    <QueryState query={debrief}>
      {(body) => (
        <>
          <section class="card" aria-label="Score">
            <h2 class="text">{body().title}</h2>
            <p>
              <strong data-testid="score">
                {body().score.points} of {body().score.of} points
              </strong>
            </p>
            <Marks marks={body().marks} />
          </section>
          <section class="card" aria-label="Explanation">
            <h2>Explanation</h2>
            <p class="text">
              <Prose text={body().explanation} />
            </p>
          </section>
          <Replay body={body()} />
          <Figures body={body()} />
        </>
      )}
    </QueryState>
  )
}

function Marks(props: { readonly marks: DebriefBody['marks'] }): JSX.Element {
  return (
    <div class="scroll" tabindex="0" role="group" aria-label="Points">
      <table>
        <thead>
          <tr>
            <th scope="col">Goal</th>
            <th scope="col" class="number">
              Points
            </th>
            <th scope="col">Reason</th>
          </tr>
        </thead>
        <tbody>
          <For each={props.marks}>
            {(mark) => (
              <tr>
                <td class="text">{mark.text}</td>
                <td class="number">
                  {mark.points} of {mark.of}
                </td>
                <td class="text">{mark.reason}</td>
              </tr>
            )}
          </For>
        </tbody>
      </table>
    </div>
  )
}

/** Only differences: the other metrics of both runs are equal. */
function Figures(props: { readonly body: DebriefBody }): JSX.Element {
  const rows = () => figuresOf(props.body.metrics, props.body.reference.metrics)
  return (
    <section class="card" aria-label="Metrics that differ">
      <h2>Metrics that differ</h2>
      <Show
        when={rows().length > 0}
        fallback={
          <p class="quiet">
            The metrics of the two runs are equal up to the end of the exercise. The table above explains the
            points.
          </p>
        }
      >
        <div class="scroll" tabindex="0" role="group" aria-label="Metrics">
          <table>
            <thead>
              <tr>
                <th scope="col">Metric</th>
                <th scope="col" class="number">
                  Your run
                </th>
                <th scope="col" class="number">
                  Reference
                </th>
              </tr>
            </thead>
            <tbody>
              <For each={rows()}>
                {({ name, own, reference }) => (
                  <tr>
                    <td>
                      <code>{name}</code>
                    </td>
                    <td class="number">{own}</td>
                    <td class="number">{reference}</td>
                  </tr>
                )}
              </For>
            </tbody>
          </table>
        </div>
      </Show>
    </section>
  )
}
