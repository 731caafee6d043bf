/**
 * The cluster on one page: its current state, wait reasons, the most affected tasks and nodes, and the
 * history.
 */
import { Show, type JSX } from 'solid-js'
import { lazyPage } from '../../components/lazy-page.tsx'
import styles from './dashboard.module.css'
import { FirstSteps } from './first-steps.tsx'
import { HotNodes } from './hot-nodes.tsx'
import { LatestSwaps } from './latest-swaps.tsx'
import { StarvedTasks } from './starved-tasks.tsx'
import { Tiles } from './tiles.tsx'
import { GpuMap } from './gpu-map.tsx'
import { StatusLine } from './status-line.tsx'
import { VramCard } from './vram.tsx'
import { TroubledNodes } from './troubled-nodes.tsx'
import { WaitingReasons } from './waiting-reasons.tsx'
import { useCluster } from '../../state/cluster.tsx'

/** Last on the page, and a quarter of its script: fetched when the tiles are shown. */
const Charts = lazyPage(() => import('./charts.tsx'))

export function Dashboard(): JSX.Element {
  const { feed } = useCluster()
  return (
    <div class="stack">
      <h1>Dashboard</h1>
      <StatusLine />
      <Show when={feed.summary()?.nodes.total === 0}>
        <FirstSteps />
      </Show>
      <Tiles />
      <GpuMap />
      <div class={styles['charts']}>
        <VramCard />
        <div class={styles['column']}>
          <TroubledNodes />
          <WaitingReasons />
        </div>
        <div class={styles['column']}>
          <StarvedTasks />
          <HotNodes />
        </div>
        <LatestSwaps />
      </div>
      <Show when={feed.summary()}>
        <Charts />
      </Show>
    </div>
  )
}
