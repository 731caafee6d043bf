import { useQuery } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { SimulationBody } from '../../../controller/api/simulations/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { useCluster } from '../../state/cluster.tsx'
import { Comparison } from './comparison.tsx'
import { RunGantts, type DrawnRun } from './run-gantts.tsx'
import { figuresOfReport, MAX_COMPARED, type Compared } from './figures.ts'

interface ComparedSimulation extends Compared {
  readonly simulation: string
  readonly kind: SimulationBody['kind']
}

/** The reports of the selected simulations, side by side. */
export function ComparedSimulations(props: { readonly ids: readonly string[] }): JSX.Element {
  const { api } = useCluster()
  const reports = useQuery(() => ({
    queryKey: ['simulations', 'compared', props.ids.join(',')],
    enabled: props.ids.length >= 2,
    queryFn: ({ signal }: { signal: AbortSignal }): Promise<readonly ComparedSimulation[]> =>
      Promise.all(
        props.ids.slice(0, MAX_COMPARED).map(async (id) => {
          const { scenario, created_at, kind } = await api.get<SimulationBody>(
            `/simulations/${pathSegment(id)}`,
            {},
            signal,
          )
          const report = await api.get<object>(`/simulations/${pathSegment(id)}/report`, {}, signal)
          return {
            name: `${scenario}, ${clockTime(created_at)}`,
            simulation: id,
            kind,
            figures: figuresOfReport(report),
          }
        }),
      ),
  }))
  return (
    <Show when={props.ids.length >= 2}>
      <QueryState query={reports}>
        {(compared) => (
          <>
            <Comparison compared={compared()} />
            <Show when={runsOf(compared()).length >= 2}>
              <RunGantts runs={runsOf(compared())} />
            </Show>
          </>
        )}
      </QueryState>
    </Show>
  )
}

/** A sweep has many runs: they are compared on the sweep's own page. */
function runsOf(compared: readonly ComparedSimulation[]): readonly DrawnRun[] {
  return compared
    .filter(({ kind }) => kind === 'run')
    .map(({ name, simulation }) => ({ name, simulation, run: null }))
}
