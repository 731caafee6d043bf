/** One line: whether all is right, and what to do next. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { CircleCheck, CircleAlert, Clock, TriangleAlert, type IconNode } from 'lucide'
import { For, Show, type JSX } from 'solid-js'
import type { ChangedConfigBody } from '../../../controller/api/config/schema.ts'
import type { SummaryBody } from '../../../controller/api/observe/summary-schema.ts'
import { usePath, useWorld } from '../../api/world.ts'
import { Icon } from '../../design/icon.tsx'
import { plural } from '../../format/figures.ts'
import { reasonWords } from '../../format/reasons.ts'
import { now, useCluster } from '../../state/cluster.tsx'
import { whyNot } from '../../state/rights.ts'
import styles from './dashboard.module.css'

interface Line {
  readonly icon: IconNode
  readonly tone: 'good' | 'warn' | 'bad'
  readonly words: string
  readonly link?: { readonly path: string; readonly words: string }
}

/** The percentage that the line tries. */
const TRIED_PERCENT = 50

export function StatusLine(): JSX.Element {
  const path = usePath()
  const line = useLine()
  return (
    <Show when={line()}>
      {(shown) => (
        <p class={styles['status']} data-tone={shown().tone} id="status-line">
          <For each={[shown().icon]}>{(icon) => <Icon of={icon} />}</For>
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

/** The feed brings a summary each second. */
const STALE_MS = 10_000

/** Failures of the last hour are unknown right after a start. */
function isKnown({ tasks }: SummaryBody): boolean {
  return tasks.ended_last_hour !== null && tasks.ended_last_hour !== undefined
}

function notAllKnown(pending: number): string {
  return pending > 0
    ? `${plural(pending, 'task is', 'tasks are')} waiting.`
    : 'All nodes are up, and no task waits. Failures of the last hour are not known.'
}

/** The first that applies. */
function useLine(): () => Line | null {
  const { feed } = useCluster()
  const tried = useTriedOvercommit()
  /** An all-clear from old data would be wrong. */
  const isFresh = (): boolean => feed.status() === 'live' && now() - (feed.heardAt() ?? 0) < STALE_MS
  return () => {
    const summary = feed.summary()
    if (summary === null || summary.nodes.total === 0) return null
    const { attention } = summary.nodes
    const { pending } = summary.tasks.by_list
    const { failed = 0, lost = 0 } = summary.tasks.ended_last_hour ?? {}
    if (attention > 0)
      return {
        icon: TriangleAlert,
        tone: 'bad',
        words: `${plural(attention, 'node needs', 'nodes need')} attention.`,
        link: { path: '/nodes?status=attention', words: 'Show nodes' },
      }
    if (failed + lost > 0)
      return {
        icon: CircleAlert,
        tone: 'bad',
        words: `${plural(failed + lost, 'task', 'tasks')} failed in the last hour.`,
        link: { path: '/tasks?tab=failed', words: 'Show tasks' },
      }
    if (pending > 0 && summary.overcommit.default_percent === 0) return overcommitOff(pending, tried())
    const [reason] = summary.pending_by_reason.reasons.toSorted((a, b) => b.tasks - a.tasks)
    if (reason !== undefined)
      return {
        icon: Clock,
        tone: 'warn',
        words:
          `${plural(pending, 'task is', 'tasks are')} waiting, ` +
          `most often: ${reasonWords(reason.reason)}.`,
        link: { path: '/tasks?tab=pending', words: 'Show tasks' },
      }
    return pending > 0 || !isKnown(summary)
      ? { icon: Clock, tone: 'warn', words: notAllKnown(pending) }
      : isFresh()
        ? { icon: CircleCheck, tone: 'good', words: 'All nodes are up, and no task waits or has failed.' }
        : {
            icon: TriangleAlert,
            tone: 'warn',
            words: 'The controller does not respond: the figures below are from before that.',
          }
  }
}

function overcommitOff(pending: number, starts: number | null): Line {
  const waiting = `${plural(pending, 'task is', 'tasks are')} waiting and overcommit is off.`
  return {
    icon: Clock,
    tone: 'warn',
    words:
      starts === null || starts === 0
        ? waiting
        : `${waiting} At ${TRIED_PERCENT}%, about ${starts} would start now.`,
    link: { path: `/settings?propose=${TRIED_PERCENT}`, words: 'Preview' },
  }
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
