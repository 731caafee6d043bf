/** The latest swap-outs: victim, beneficiary and reason, each with a link to its decision. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, type JSX } from 'solid-js'
import type { DecisionPage } from '../../../controller/api/observe/decision-schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { SWAP_KINDS } from '../../format/event-groups.ts'
import { useCluster } from '../../state/cluster.tsx'
import styles from './dashboard.module.css'

const SHOWN = 5
const AGAIN_MS = 10_000

export function LatestSwaps(): JSX.Element {
  const { api } = useCluster()
  const path = usePath()
  const decisions = useQuery(() => ({
    // Not under `decisions`: every start of a task would repeat the request.
    queryKey: ['series', 'latest-swaps'],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<DecisionPage>('/decisions', { kind: 'swap_out', limit: SHOWN }, signal),
    refetchInterval: AGAIN_MS,
  }))
  return (
    <section class="card" aria-label="Latest swap-outs">
      <h2>Latest swap-outs</h2>
      <QueryState
        query={decisions}
        isEmpty={(page) => page.items.length === 0}
        whenEmpty={<p class="quiet">No swap-outs in the retained history.</p>}
      >
        {(page) => (
          <>
            <ul class={styles['swaps']}>
              <For each={page().items}>
                {(decision) => (
                  <li class="text">
                    <span class="quiet">{clockTime(decision.at)}</span> <span>{decision.sentence}</span>{' '}
                    <A href={path(`/tasks/${pathSegment(decision.task_id)}?decision=${decision.number}`)}>
                      Why<span class="visually-hidden">: decision {decision.number}</span>
                    </A>
                  </li>
                )}
              </For>
            </ul>
            <p>
              <A href={path(`/events?kind=${SWAP_KINDS}`)}>All swaps</A>
            </p>
          </>
        )}
      </QueryState>
    </section>
  )
}
