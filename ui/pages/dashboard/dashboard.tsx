/** The cluster on one page. */
import { type JSX } from 'solid-js'
import { Tile } from '../../components/tile.tsx'
import { percent, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'

export function Dashboard(): JSX.Element {
  const { feed } = useCluster()
  const summary = feed.summary
  return (
    <div class="stack">
      <h1>Dashboard</h1>
      <div class="grid">
        <Tile
          name="Utilization"
          value={percent(summary()?.utilization_percent)}
          note={summary()?.utilization_unknown_because ?? null}
          help="Time in which at least one kernel ran, of the time of all GPUs that are up."
        />
        <Tile name="Pending" value={whole(summary()?.tasks.by_list.pending)} />
      </div>
    </div>
  )
}
