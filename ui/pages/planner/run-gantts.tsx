/** The compared runs on one time axis: the tasks on each GPU. */
import { useQuery } from '@tanstack/solid-query'
import type { JSX } from 'solid-js'
import type { RunResidencyBody } from '../../../controller/api/simulations/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { AlignedGantts } from '../../charts/aligned-gantts.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'

export interface DrawnRun {
  readonly name: string
  readonly simulation: string
  /** Run of a sweep; null: the simulation is a single run. */
  readonly run: {
    readonly overcommit_percent: number
    readonly seed: number
    readonly settings: string
  } | null
}

export function RunGantts(props: { readonly runs: readonly DrawnRun[] }): JSX.Element {
  const { api } = useCluster()
  const residencies = useQuery(() => ({
    queryKey: ['simulations', 'residency', JSON.stringify(props.runs)],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      Promise.all(
        props.runs.map(async ({ name, simulation, run }) => ({
          name,
          residency: await api.get<RunResidencyBody>(
            `/simulations/${pathSegment(simulation)}/residency`,
            { ...run },
            signal,
          ),
        })),
      ),
    staleTime: Infinity,
    retry: false,
  }))
  return (
    <section class="card" aria-label="GPU timelines">
      <h2>GPU timelines</h2>
      <QueryState query={residencies}>{(runs) => <AlignedGantts runs={runs()} />}</QueryState>
    </section>
  )
}
