/** The live cluster as a scenario: its current state, continued at other percentages. */
import { useQuery } from '@tanstack/solid-query'
import { createEffect, Show, type JSX } from 'solid-js'
import { QueryState } from '../../components/query-state.tsx'
import { whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { chosen, notYet, type Chosen } from '../../scenario/choice.ts'
import type { SnapshotParts } from './traced-scenario.ts'

/** Limit of a request body with a scenario, with a margin for its other fields. */
const MAX_CHARACTERS = 1_000_000

export function useSnapshot() {
  const { api } = useCluster()
  return useQuery(() => ({
    queryKey: ['snapshot'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<SnapshotParts>('/snapshot', {}, signal),
    staleTime: Infinity,
    gcTime: 0,
  }))
}

export function LiveSource(props: { readonly onChosen: (choice: Chosen) => void }): JSX.Element {
  const snapshot = useSnapshot()
  createEffect(() => {
    const { data } = snapshot
    if (data === undefined) return props.onChosen(notYet('Reading the live state.'))
    if (data.fleet?.length === 0) return props.onChosen(notYet('No node is up.'))
    if (data.workload?.length === 0)
      return props.onChosen(notYet('No open tasks: there is nothing to simulate.'))
    if (JSON.stringify(data, null, 2).length > MAX_CHARACTERS) {
      return props.onChosen(
        notYet(
          'The live state is too large for the REST API. Save it with headroom snapshot, then run ' +
            'the sweep with headroom sim sweep.',
        ),
      )
    }
    return props.onChosen(chosen({ scenario_inline: data }))
  })
  return (
    <QueryState query={snapshot}>
      {(data) => (
        <>
          <p class="text">
            {whole(data().fleet?.length)} nodes and {whole(data().workload?.length)} open tasks.{' '}
            <button type="button" onClick={() => void snapshot.refetch()}>
              Refresh
            </button>
          </p>
          <Show when={data().description}>{(words) => <p class="quiet text">{words()}</p>}</Show>
          <p class="quiet">
            The remaining work of each task is estimated once and is the same for every seed. To use the
            workload of the past few hours instead, choose “Trace”.
          </p>
        </>
      )}
    </QueryState>
  )
}
