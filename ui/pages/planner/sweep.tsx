/** One simulation: progress and results. */
import { useParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { Match, Show, Switch, type JSX } from 'solid-js'
import type { SimulationBody } from '../../../controller/api/simulations/schema.ts'
import { isFinal, pathSegment } from '../../api/client.ts'
import { Crumbs } from '../../components/crumbs.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { useCluster } from '../../state/cluster.tsx'
import { usePageTitle } from '../../state/page-title.ts'
import { isSweep } from './figures.ts'
import { Progress } from './progress.tsx'
import { RunResult } from './run-result.tsx'
import { SweepResult } from './sweep-result.tsx'

const AGAIN_MS = 500

export default function Sweep(): JSX.Element {
  const { api } = useCluster()
  const { id = '' } = useParams<{ id: string }>()
  const simulation = useQuery(() => ({
    queryKey: ['simulations', id],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<SimulationBody>(`/simulations/${pathSegment(id)}`, {}, signal),
    refetchInterval: ({ state }: { state: { data?: SimulationBody | undefined; error: Error | null } }) =>
      isOver(state.data) || isFinal(state.error) ? false : AGAIN_MS,
  }))
  usePageTitle(() => simulation.data?.scenario)
  return (
    <div class="stack">
      <Crumbs path="/planner" name="Planner" />
      <h1 class="text">{simulation.data?.scenario ?? 'Simulation'}</h1>
      <QueryState query={simulation}>
        {(record) => (
          <>
            <p class="quiet text">
              {record().kind}, {record().state}, created {clockTime(record().created_at)}
              {record().created_by === null ? '' : ` by ${record().created_by}`}; scenario{' '}
              <code title={record().scenario_sha256}>{record().scenario_sha256.slice(0, 12)}</code>
            </p>
            <Show when={isOver(record()) && record().reason}>
              {(reason) => <p class="warn text">{reason()}</p>}
            </Show>
            <Show when={isOver(record())}>
              <Report simulation={record()} />
            </Show>
            {/* Deleting comes after the results. */}
            <Progress simulation={record()} onChange={() => void simulation.refetch()} />
          </>
        )}
      </QueryState>
    </div>
  )
}

function Report(props: { readonly simulation: SimulationBody }): JSX.Element {
  const { api } = useCluster()
  const report = useQuery(() => ({
    queryKey: ['simulations', props.simulation.id, 'report'],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<object>(`/simulations/${pathSegment(props.simulation.id)}/report`, {}, signal),
    staleTime: Infinity,
    retry: false,
  }))
  /** A simulation that ended early may have no report. */
  const isWithout = (): boolean => props.simulation.state !== 'done' && report.error !== null
  return (
    <Show
      when={!isWithout()}
      fallback={<p>The simulation ended before its first run finished, so it has no results.</p>}
    >
      <QueryState query={report}>
        {(body) => (
          <Switch fallback={<RunResult report={body()} />}>
            <Match when={narrowed(body())}>
              {(sweep) => (
                <SweepResult report={sweep()} id={props.simulation.id} name={props.simulation.scenario} />
              )}
            </Match>
          </Switch>
        )}
      </QueryState>
    </Show>
  )
}

function narrowed(report: object) {
  return isSweep(report) ? report : null
}

function isOver(simulation: SimulationBody | undefined): boolean {
  return simulation !== undefined && simulation.state !== 'queued' && simulation.state !== 'running'
}
