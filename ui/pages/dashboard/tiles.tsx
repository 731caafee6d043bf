/** The headline: utilization, starvation with its parts, tasks, GPUs and failures, with trends. */
import { A } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import { usePath } from '../../api/world.ts'
import { Tile } from '../../components/tile.tsx'
import { clockTime } from '../../format/clock.ts'
import { percent, trendWords, UNKNOWN, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { HELPS } from './helps.ts'
import styles from './dashboard.module.css'

/** Events older than an hour may not be retained: the figure then starts later. */
const HOUR_MARGIN_MS = 3_590_000

const PARTS = ['queue', 'swap', 'compute'] as const

export function Tiles(): JSX.Element {
  const { feed } = useCluster()
  const summary = feed.summary
  return (
    <div class={`card ${styles['tiles']}`} data-revision={summary()?.revision}>
      <Tile
        name="Utilization"
        value={percent(summary()?.utilization_percent)}
        note={summary()?.utilization_unknown_because ?? null}
        help={HELPS.utilization}
      >
        <Trend by={summary()?.trends.utilization_points} unit="pp" />
      </Tile>
      <Starvation />
      <Tile
        name="Running"
        value={whole(summary()?.tasks.by_list.running)}
        note="tasks on GPUs"
        help={HELPS.running}
      />
      <Tile name="Queue" value={whole(summary()?.tasks.by_list.pending)} help={HELPS.queue}>
        <Trend by={summary()?.trends.pending_tasks} unit="tasks" />
      </Tile>
      <Gpus />
      <Failed />
    </div>
  )
}

interface TrendProps {
  readonly by: number | null | undefined
  readonly unit: 'pp' | 'tasks'
}

/** The difference to the same hour yesterday; a dash where nothing is known of yesterday. */
function Trend(props: TrendProps): JSX.Element {
  return (
    <p
      class={styles['trend']}
      title={props.by === null ? 'There is no data for the same hour yesterday.' : undefined}
    >
      vs. yesterday: {trendWords(props.by, props.unit)}
    </p>
  )
}

function Starvation(): JSX.Element {
  const { feed } = useCluster()
  const summary = feed.summary
  const starvation = () => summary()?.starvation_percent ?? null
  return (
    <Tile
      name="Starvation"
      value={percent(starvation()?.total)}
      note={
        summary()?.starvation_unknown_because ??
        (summary()?.starvation_compute_is_estimate === true ? 'The compute part is an estimate.' : null)
      }
      help={HELPS.starvation}
    >
      <Show when={starvation()}>
        {(parts) => (
          <p class={styles['parts']}>
            <For each={PARTS}>
              {(part) => (
                <span class="nowrap">
                  <i class={styles[part]} /> {part} {percent(parts()[part])}
                </span>
              )}
            </For>
          </p>
        )}
      </Show>
      <Trend by={summary()?.trends.starvation_points} unit="pp" />
    </Tile>
  )
}

function Gpus(): JSX.Element {
  const { feed } = useCluster()
  const path = usePath()
  const summary = feed.summary
  const gpus = () => summary()?.gpus
  const down = (): number => (summary()?.nodes.total ?? 0) - (summary()?.nodes.up ?? 0)
  return (
    <Tile
      name="GPUs up"
      value={gpus() === undefined ? UNKNOWN : `${whole(gpus()?.up)} of ${whole(gpus()?.total)}`}
      tone={down() > 0 ? 'bad' : undefined}
      note={
        summary() === null ? null : `${whole(summary()?.nodes.up)} of ${whole(summary()?.nodes.total)} nodes`
      }
      help={HELPS.gpus}
    >
      <Show when={down() > 0}>
        <p class={styles['trend']}>
          {/* Silent and unreachable nodes: no single status filter has both. */}
          <A class="bad" href={`${path('/')}#trouble`}>
            {down() === 1 ? '1 node is' : `${whole(down())} nodes are`} not up
          </A>
        </p>
      </Show>
    </Tile>
  )
}

function Failed(): JSX.Element {
  const { feed } = useCluster()
  const path = usePath()
  const ends = () => feed.summary()?.tasks.ended_last_hour ?? null
  const failed = (): number | null => {
    const { failed: some, lost } = ends() ?? { failed: null, lost: 0 }
    return some === null ? null : some + lost
  }
  const note = (): string | null => {
    const known = ends()
    if (known === null) return feed.summary() === null ? null : 'The store has not responded yet.'
    const isShort = Date.parse(feed.summary()?.at ?? '') - Date.parse(known.since) < HOUR_MARGIN_MS
    return (
      `${whole(known.failed)} failed, ${whole(known.lost)} ` +
      `lost${isShort ? ` since ${clockTime(known.since)}` : ''}`
    )
  }
  return (
    <Tile
      name="Failed, last hour"
      value={whole(failed())}
      note={note()}
      help={HELPS.failed}
      tone={(failed() ?? 0) > 0 ? 'bad' : undefined}
    >
      <Show when={(failed() ?? 0) > 0}>
        <p class={styles['trend']}>
          <A href={path('/tasks?tab=failed')}>Failed tasks</A>
        </p>
      </Show>
    </Tile>
  )
}
