/** Usage, waits and starvation of the caller's open tasks. Without authentication there is no caller. */
import { useQuery } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { OwnerBody, OwnerListBody } from '../../../controller/api/owners/schema.ts'
import { Since } from '../../components/ago.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { Tile } from '../../components/tile.tsx'
import { mib, plural, seconds, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { lostWords, TasksLink } from './owner-columns.tsx'
import styles from './owners.module.css'

const AGAIN_MS = 5_000

export function OwnTasks(): JSX.Element {
  const { session } = useCluster()
  return <Show when={session.body()?.caller?.name}>{(name) => <Own name={name()} />}</Show>
}

function Own(props: { readonly name: string }): JSX.Element {
  const { api } = useCluster()
  const own = useQuery(() => ({
    queryKey: ['owners', 'own', props.name],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<OwnerListBody>('/owners', { owner: props.name }, signal),
    staleTime: 2_000,
    refetchInterval: AGAIN_MS,
  }))
  return (
    <section class="card stack" aria-label="Your tasks">
      <h2>Your tasks</h2>
      <QueryState
        query={own}
        isEmpty={({ items }) => items.length === 0}
        whenEmpty={<p class="quiet text">{props.name} has no open tasks.</p>}
      >
        {(page) => <Figures of={page().items[0] as OwnerBody} />}
      </QueryState>
    </section>
  )
}

function Figures(props: { readonly of: OwnerBody }): JSX.Element {
  const link = (tab: 'running' | 'pending', text: string): JSX.Element => (
    <TasksLink owner={props.of.owner} tab={tab}>
      {text}
    </TasksLink>
  )
  return (
    <div class={styles['tiles']}>
      <Tile name="Running" value={whole(props.of.tasks.running)}>
        <p class="quiet">
          on {plural(props.of.gpus, 'GPU', 'GPUs')}, {whole(props.of.tasks.swapped_out)} swapped out
        </p>
        <p>{link('running', 'Running tasks')}</p>
      </Tile>
      <Tile name="Resident VRAM" value={mib(props.of.resident_mib)}>
        <p class="quiet">{mib(props.of.out_mib)} swapped out</p>
      </Tile>
      <Tile name="Pending" value={whole(props.of.tasks.pending)}>
        <p class="quiet">
          longest wait <Since at={props.of.longest_wait_since} />, {whole(props.of.tasks.on_hold)} on hold
        </p>
        <p>{link('pending', 'Pending tasks')}</p>
      </Tile>
      <Tile
        name="GPU time lost"
        value={seconds(props.of.lost.total_seconds)}
        note={lostWords(props.of.lost)}
        help="GPU time that your open tasks wanted but did not get since their submission: in the queue
          before their first start, swapped out, or resident but sharing the GPU."
      />
    </div>
  )
}
