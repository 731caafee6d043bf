import { A } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import type { SummaryBody } from '../../../controller/api/observe/summary-schema.ts'
import { usePath } from '../../api/world.ts'
import { Tile } from '../../components/tile.tsx'
import { clockTime, mib, percent, UNKNOWN, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { HELPS } from './helps.ts'
import styles from './dashboard.module.css'

/** Events older than an hour may not be retained: the figure then starts later. */
const HOUR_MARGIN_MS = 3_590_000

const PARTS = ['queue', 'swap', 'compute'] as const

export function Tiles(): JSX.Element {
  const { feed } = useCluster()
  const summary = feed.summary
  const vram = () => summary()?.vram
  const starvation = () => summary()?.starvation_percent ?? null
  const path = usePath()
  const gpus = () => summary()?.gpus
  const down = (): number => (summary()?.nodes.total ?? 0) - (summary()?.nodes.up ?? 0)
  const ends = () => summary()?.tasks.ended_last_hour ?? null
  const failed = (): number | null => {
    const { failed: some, lost } = ends() ?? { failed: null, lost: 0 }
    return some === null ? null : some + lost
  }
  const failedNote = (): string | null => {
    const known = ends()
    if (known === null) return summary() === null ? null : 'The store has not responded yet.'
    const isShort = Date.parse(summary()?.at ?? '') - Date.parse(known.since) < HOUR_MARGIN_MS
    return (
      `${whole(known.failed)} failed, ${whole(known.lost)} ` +
      `lost${isShort ? ` since ${clockTime(known.since)}` : ''}`
    )
  }
  /** While nodes are silent: the part that the charts show. */
  const onUp = (of: keyof SummaryBody['vram']['up']): string | null =>
    down() > 0 ? `${mib(vram()?.up[of])} on nodes that are up` : null
  return (
    <div class={styles['tiles']} data-revision={summary()?.revision}>
      <div class={styles['few']}>
        <Tile
          name="GPUs up"
          value={gpus() === undefined ? UNKNOWN : `${whole(gpus()?.up)} of ${whole(gpus()?.total)}`}
          note={
            summary() === null
              ? null
              : `${whole(summary()?.nodes.up)} of ${whole(summary()?.nodes.total)} nodes`
          }
          help={HELPS.gpus}
        >
          <Show when={down() > 0}>
            <p>
              {/* Silent and unreachable nodes: no single status filter has both. */}
              <A class="bad" href={`${path('/')}#trouble`}>
                {down() === 1 ? '1 node is' : `${whole(down())} nodes are`} not up
              </A>
            </p>
          </Show>
        </Tile>
        <Tile
          name="Utilization"
          value={percent(summary()?.utilization_percent)}
          note={summary()?.utilization_unknown_because ?? null}
          help={HELPS.utilization}
        />
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
                    <span>
                      <i class={styles[part]} /> {part} {percent(parts()[part])}
                    </span>
                  )}
                </For>
              </p>
            )}
          </Show>
        </Tile>
        <Tile
          name="Queue"
          value={whole(summary()?.tasks.by_list.pending)}
          note={summary() === null ? null : `${whole(summary()?.tasks.by_list.running)} running`}
          help={HELPS.queue}
        />
        <Tile name="Failed, last hour" value={whole(failed())} note={failedNote()} help={HELPS.failed}>
          <Show when={(failed() ?? 0) > 0}>
            <p>
              <A href={path('/tasks?tab=completed')}>Completed tasks</A>
            </p>
          </Show>
        </Tile>
      </div>
      <div class={styles['many']}>
        <Tile
          name="Physical VRAM"
          value={mib(vram()?.physical_mib)}
          note={onUp('physical_mib')}
          help={HELPS.physical}
        />
        <Tile name="Used VRAM" value={mib(vram()?.used_mib)} note={onUp('used_mib')} help={HELPS.used} />
        <Tile
          name="Allocated VRAM"
          value={mib(vram()?.committed_mib)}
          note={onUp('committed_mib')}
          help={HELPS.allocated}
        />
        <Tile
          name="Schedulable VRAM"
          value={mib(vram()?.effective_schedulable_mib)}
          note={
            summary() === null
              ? null
              : `overcommit ${summary()?.overcommit.default_percent} %, ` +
                `${overriding(summary()?.overcommit.nodes_with_override ?? 0)}`
          }
          help={HELPS.schedulable}
        >
          <Show when={onUp('effective_schedulable_mib')}>{(words) => <p class="quiet">{words()}</p>}</Show>
        </Tile>
        <Tile
          name="Swapped out"
          value={mib(vram()?.swapped_mib)}
          note={onUp('swapped_mib')}
          help={HELPS.swapped}
        />
      </div>
    </div>
  )
}

function overriding(nodes: number): string {
  if (nodes === 0) return 'no node overrides it'
  return nodes === 1 ? '1 node overrides it' : `${whole(nodes)} nodes override it`
}
