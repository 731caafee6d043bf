/** Runs and sweeps, newest first; up to six can be selected for a comparison. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import type { JSX } from 'solid-js'
import type { SimulationBody, SimulationPage } from '../../../controller/api/simulations/schema.ts'
import { usePath } from '../../api/world.ts'
import { DataTable } from '../../design/data-table.tsx'
import type { Column } from '../../design/table.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { percent, UNKNOWN } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { MAX_COMPARED } from './figures.ts'

const AGAIN_MS = 2_000
const SHOWN = 100

export interface SimulationListProps {
  readonly picked: readonly string[]
  readonly onPick: (ids: readonly string[]) => void
}

export function SimulationList(props: SimulationListProps): JSX.Element {
  const { api } = useCluster()
  const path = usePath()
  const list = useQuery(() => ({
    queryKey: ['simulations'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<SimulationPage>('/simulations', {}, signal),
    refetchInterval: AGAIN_MS,
  }))
  const rowsOf = ({ items }: SimulationPage): readonly SimulationBody[] =>
    items.filter(({ kind }) => kind !== 'session').slice(0, SHOWN)
  const toggle = (id: string): void =>
    props.onPick(
      props.picked.includes(id) ? props.picked.filter((each) => each !== id) : [...props.picked, id],
    )
  const columns: readonly Column<SimulationBody>[] = [
    {
      name: 'Compare',
      cell: (row) => (
        <input
          type="checkbox"
          aria-label={`Compare ${row().scenario} from ${clockTime(row().created_at)}`}
          checked={props.picked.includes(row().id)}
          disabled={
            row().state !== 'done' ||
            (!props.picked.includes(row().id) && props.picked.length >= MAX_COMPARED)
          }
          onChange={() => toggle(row().id)}
        />
      ),
    },
    {
      name: 'Scenario',
      cell: (row) => (
        <A class="text" href={path(`/planner/${row().id}`)}>
          {row().scenario}
        </A>
      ),
    },
    { name: 'Kind', cell: (row) => row().kind },
    { name: 'State', cell: (row) => <span title={row().reason ?? undefined}>{row().state}</span> },
    { name: 'Progress', isNumber: true, cell: (row) => percent(row().progress * 100, 0) },
    { name: 'Created', cell: (row) => clockTime(row().created_at) },
    { name: 'By', cell: (row) => <span class="text">{row().created_by ?? UNKNOWN}</span> },
  ]
  return (
    <section class="card" aria-label="Previous sweeps">
      <h2>Previous sweeps</h2>
      <QueryState
        query={list}
        isEmpty={(page) => rowsOf(page).length === 0}
        whenEmpty={<p>No sweeps yet: choose a workload above and run a sweep.</p>}
      >
        {(page) => (
          <>
            <p class="quiet">Select 2 to {MAX_COMPARED} finished simulations to compare them.</p>
            <DataTable name="Previous sweeps" columns={columns} rows={rowsOf(page())} idOf={({ id }) => id} />
          </>
        )}
      </QueryState>
    </section>
  )
}
