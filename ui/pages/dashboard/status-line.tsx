/** One line: whether all is right, and what to do next. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { ChangedConfigBody } from '../../../controller/api/config/schema.ts'
import { usePath, useWorld } from '../../api/world.ts'
import { Icon } from '../../design/icon.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { useFreshness } from '../../state/freshness.ts'
import { whyNot } from '../../state/rights.ts'
import styles from './dashboard.module.css'
import { statusOf, TRIED_PERCENT } from './status-of.ts'

const ICONS = { good: 'circle-check', warn: 'clock', bad: 'triangle-alert' } as const

export function StatusLine(): JSX.Element {
  const path = usePath()
  const { feed } = useCluster()
  const freshness = useFreshness()
  const tried = useTriedOvercommit()
  const status = () => {
    const summary = feed.summary()
    return summary === null ? null : statusOf(summary, { freshness: freshness(), starts: tried() })
  }
  return (
    <Show when={status()}>
      {(shown) => (
        <p class={styles['status']} data-tone={shown().tone} id="status-line">
          <For each={[ICONS[shown().tone]]}>{(icon) => <Icon of={icon} />}</For>
          <span>{shown().words}</span>
          <Show when={shown().link}>
            {(link) => (
              <A class="button" href={path(link().path)}>
                {link().words}
              </A>
            )}
          </Show>
        </p>
      )}
    </Show>
  )
}

/** Pending tasks that a higher percentage would start; null: unknown, or not permitted. */
function useTriedOvercommit(): () => number | null {
  const { api, feed, session } = useCluster()
  const world = useWorld()
  const isAsked = (): boolean =>
    feed.summary()?.overcommit.default_percent === 0 &&
    (feed.summary()?.tasks.by_list.pending ?? 0) > 0 &&
    whyNot(session.body(), 'operator', world) === null
  const query = useQuery(() => ({
    queryKey: ['tried-overcommit'],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const { body } = await api.send<ChangedConfigBody>('PUT', '/config', {
        query: { dry_run: true, forecast: false },
        body: { default_vram_overcommit_percent: TRIED_PERCENT },
        signal,
      })
      const next = 'impact' in body ? body.impact?.next_cycle : undefined
      return next === undefined || next === null ? null : next.starts + next.starts_after_swaps
    },
    enabled: isAsked(),
    staleTime: 30_000,
    refetchInterval: 30_000,
  }))
  return () => (isAsked() ? (query.data ?? null) : null)
}
