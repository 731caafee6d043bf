/** The live cluster as a scenario: what it does now, run on at other percentages. */
import { useQuery } from '@tanstack/solid-query'
import { createEffect, Show, type JSX } from 'solid-js'
import { QueryState } from '../../components/query-state.tsx'
import { whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { chosen, notYet, type Chosen } from '../../scenario/choice.ts'
import type { SnapshotParts } from './traced-scenario.ts'

/** Of a body that holds a scenario, with room for the rest of it. */
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
    if (data === undefined) return props.onChosen(notYet('The live state is being read.'))
    if (data.fleet?.length === 0) return props.onChosen(notYet('No node is up.'))
    if (data.workload?.length === 0)
      return props.onChosen(notYet('No task is open, so there is nothing to run on.'))
    if (JSON.stringify(data, null, 2).length > MAX_CHARACTERS) {
      return props.onChosen(
        notYet(
          'The live state is larger than the controller takes over REST: save it with headroom snapshot, and sweep with headroom sim sweep.',
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
              Take it anew
            </button>
          </p>
          <Show when={data().description}>{(words) => <p class="quiet text">{words()}</p>}</Show>
          <p class="quiet">
            What each task has left to do was drawn once: more seeds do not draw it anew. What ran here in the
            last hours is a trace: choose “A trace”.
          </p>
        </>
      )}
    </QueryState>
  )
}
