/**
 * The result of an exercise: points with their reasons, and the user's actions next to the reference
 * solution.
 */
import { useQuery } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { DebriefBody } from '../../../controller/api/simulations/exercise-schema.ts'
import { Prose } from '../../components/prose.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { useSessionControl } from './session-control.ts'
import { figuresOf, type Figure } from './figures.ts'
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
            <Table name="Points" columns={MARKS} rows={body().marks} />
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

const MARKS: readonly Column<DebriefBody['marks'][number]>[] = [
  { name: 'Goal', class: 'text', cell: (row) => row().text },
  { name: 'Points', isNumber: true, cell: (row) => `${row().points} of ${row().of}` },
  { name: 'Reason', class: 'text', cell: (row) => row().reason },
]

const FIGURES: readonly Column<Figure>[] = [
  { name: 'Metric', cell: (row) => <code>{row().name}</code> },
  { name: 'Your run', isNumber: true, cell: (row) => row().own },
  { name: 'Reference', isNumber: true, cell: (row) => row().reference },
]

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
            score.
          </p>
        }
      >
        <Table name="Metrics" columns={FIGURES} rows={rows()} idOf={({ name }) => name} />
      </Show>
    </section>
  )
}
