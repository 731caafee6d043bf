/** The one line of the dashboard: whether all is right, and what to do next. Pure. */
import type { SummaryBody } from '../../../controller/api/observe/summary-schema.ts'
import { plural, whole } from '../../format/figures.ts'
import { reasonWords } from '../../format/reasons.ts'
import type { Freshness } from '../../api/freshness.ts'

export interface Status {
  readonly tone: 'good' | 'warn' | 'bad'
  readonly words: string
  readonly link?: { readonly path: string; readonly words: string }
}

export interface Seen {
  readonly freshness: Freshness
  /** Pending tasks that TRIED_PERCENT of overcommit would start; null: unknown, or not permitted. */
  readonly starts: number | null
}

/** The percentage that the line tries. */
export const TRIED_PERCENT = 50

/** Reasons that no change of the other tasks removes. */
const NEVER: readonly string[] = ['NEVER_FITS', 'EXCEEDS_NODE_GPU_COUNT', 'RESIDENCY_IMPOSSIBLE']

/** The first that applies; null: there is nothing to report on. An all-clear from old data would be wrong. */
export function statusOf(summary: SummaryBody, { freshness, starts }: Seen): Status | null {
  if (summary.nodes.total === 0) return null
  if (freshness === 'silent')
    return {
      tone: 'bad',
      words: 'The controller does not respond. The figures below are not current.',
    }
  return urgent(summary) ?? waiting(summary, starts) ?? allClear(summary, freshness)
}

function urgent({ alarms, nodes: { attention }, tasks }: SummaryBody): Status | null {
  if (alarms.length > 0)
    return {
      tone: 'bad',
      words: `${plural(alarms.length, 'alarm is', 'alarms are')} active: see the top of this page.`,
    }
  if (attention > 0)
    return {
      tone: 'bad',
      words: `${plural(attention, 'node needs', 'nodes need')} attention.`,
      link: { path: '/nodes?status=attention', words: 'Show nodes' },
    }
  const { failed = 0, lost = 0 } = tasks.ended_last_hour ?? {}
  if (failed + lost > 0)
    return {
      tone: 'bad',
      words: `${plural(failed + lost, 'task', 'tasks')} failed in the last hour.`,
      link: { path: '/tasks?tab=failed', words: 'Show tasks' },
    }
  return null
}

function waiting(summary: SummaryBody, starts: number | null): Status | null {
  const { pending } = summary.tasks.by_list
  if (pending === 0) return null
  const waits = plural(pending, 'task is', 'tasks are')
  const never = neverWords(summary)
  if (summary.overcommit.default_percent === 0)
    return {
      tone: 'warn',
      words:
        `${waits} waiting, and overcommit is off.` +
        (starts === null || starts === 0
          ? ''
          : ` At ${TRIED_PERCENT}% overcommit, about ${starts} would start now.`) +
        never,
      link: { path: `/settings?propose=${TRIED_PERCENT}`, words: 'Preview' },
    }
  const [most] = summary.pending_by_reason.reasons.toSorted((a, b) => b.tasks - a.tasks)
  const often = most === undefined ? '.' : `. Most common reason: ${reasonWords(most.reason)}.`
  return {
    tone: 'warn',
    words: `${waits} waiting${often}${never}`,
    link: { path: '/tasks?tab=pending', words: 'Show tasks' },
  }
}

function neverWords({ pending_by_reason: { reasons, is_estimate: isEstimate } }: SummaryBody): string {
  const count = reasons
    .filter(({ reason }) => NEVER.includes(reason))
    .reduce((sum, { tasks }) => sum + tasks, 0)
  return count === 0 ? '' : ` ${isEstimate ? 'About ' : ''}${whole(count)} of them can never start.`
}

function allClear({ tasks }: SummaryBody, freshness: Seen['freshness']): Status | null {
  if (freshness !== 'fresh') return null
  // Failures of the last hour are unknown right after a start.
  return tasks.ended_last_hour === null || tasks.ended_last_hour === undefined
    ? {
        tone: 'warn',
        words: 'All nodes are up, and no task is waiting. Failures in the last hour are unknown.',
      }
    : { tone: 'good', words: 'All nodes are up. No task is waiting, and none failed in the last hour.' }
}
