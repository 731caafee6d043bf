/**
 * A trace on the fleet of this cluster: an uploaded trace, a new file, or the recent history of the cluster.
 */
import { useQuery, useQueryClient } from '@tanstack/solid-query'
import { createEffect, createSignal, createUniqueId, For, Show, type JSX } from 'solid-js'
import type { TracePage } from '../../../controller/api/simulations/trace-schema.ts'
import { QueryState } from '../../components/query-state.tsx'
import { whole } from '../../format/figures.ts'
import { Table, type Column } from '../../design/table.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { chosen, notYet, type Chosen } from '../../scenario/choice.ts'
import { useSnapshot } from './live-source.tsx'
import { tracedScenario, type Activity } from './traced-scenario.ts'
import { SendTrace } from './send-trace.tsx'
import styles from './planner.module.css'

const DROPPED: readonly Column<[reason: string, rows: number]>[] = [
  { name: 'Drop reason', class: 'text', cell: (row) => row()[0].replaceAll('_', ' ') },
  { name: 'Rows', isNumber: true, cell: (row) => whole(row()[1]) },
]

export interface TraceSourceProps {
  readonly name: string
  readonly onName: (name: string) => void
  readonly onChosen: (choice: Chosen) => void
  readonly onEdit: (text: string) => void
}

export function TraceSource(props: TraceSourceProps): JSX.Element {
  const { api } = useCluster()
  const queries = useQueryClient()
  const id = createUniqueId()
  const [activity, setActivity] = createSignal<Activity>(null)
  const snapshot = useSnapshot()
  const traces = useQuery(() => ({
    queryKey: ['traces'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<TracePage>('/traces', {}, signal),
  }))
  const entry = () => traces.data?.items.find(({ name }) => name === props.name)
  const scenario = () =>
    snapshot.data === undefined || props.name === ''
      ? null
      : tracedScenario(snapshot.data, props.name, activity())
  createEffect(() => {
    const made = scenario()
    if (props.name === '') return props.onChosen(notYet('Choose a trace, or upload one.'))
    if (traces.data !== undefined && entry() === undefined)
      return props.onChosen(notYet(`Trace ${props.name} not found.`))
    if (entry()?.tasks === 0) return props.onChosen(notYet('The trace has no tasks.'))
    if (made === null) return props.onChosen(notYet('Reading the nodes of this cluster.'))
    if (snapshot.data?.fleet?.length === 0)
      return props.onChosen(notYet('No node is up. Edit the text and enter the nodes there.'))
    return props.onChosen(chosen({ scenario_inline: made }))
  })
  const onSent = async (name: string): Promise<void> => {
    await queries.invalidateQueries({ queryKey: ['traces'] })
    props.onName(name)
  }
  return (
    <>
      <QueryState
        query={traces}
        isEmpty={({ items }) => items.length === 0}
        whenEmpty={<p>No traces yet: upload one below.</p>}
      >
        {(page) => (
          <div class={styles['field']}>
            <label for={id}>Trace</label>
            <select id={id} onChange={(event) => props.onName(event.currentTarget.value)}>
              <option value="" selected={props.name === ''}>
                Choose one
              </option>
              <For each={page().items}>
                {({ name, tasks }) => (
                  <option value={name} selected={name === props.name}>
                    {name} ({whole(tasks)} tasks)
                  </option>
                )}
              </For>
            </select>
          </div>
        )}
      </QueryState>
      <Show when={entry()}>
        {(trace) => (
          <>
            <p class="text">
              {whole(trace().tasks)} tasks from {whole(trace().rows)} rows, uploaded as {trace().format}.
            </p>
            <Show
              when={Object.keys(trace().dropped).length > 0}
              fallback={<p class="quiet">No rows were dropped.</p>}
            >
              <Table name="Dropped rows" columns={DROPPED} rows={Object.entries(trace().dropped)} />
            </Show>
            <div class="row">
              <label>
                GPU activity of the tasks{' '}
                <select onChange={(event) => setActivity((event.currentTarget.value || null) as Activity)}>
                  <option value="">from the trace: every seed gives the same run</option>
                  <option value="serving">model servers, generated for each seed</option>
                  <option value="training">training, generated for each seed</option>
                </select>
              </label>
              <button
                type="button"
                disabled={scenario() === null}
                onClick={() => props.onEdit(JSON.stringify(scenario(), null, 2))}
              >
                Edit text
              </button>
            </div>
            <p class="quiet">
              The trace runs on the {whole(snapshot.data?.fleet?.length)} nodes of this cluster that are up,
              with their configuration.
            </p>
          </>
        )}
      </Show>
      <SendTrace onSent={(name) => void onSent(name)} />
    </>
  )
}
