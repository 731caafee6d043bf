/** A result for a terminal, one fact per line. */
import { factsOf, shownNumber, shownPercent, shownSeconds } from './plain-text.ts'
import type { RunResult } from '../results/result.ts'
import type { Distribution, Metrics } from '../scenario/metrics.ts'

/** @param title what was run, in a few words */
export function formatResult(title: string, { metrics, seed, virtual_s, digest }: RunResult): string {
  const { tasks, starvation_percent: starvation } = metrics
  const makespan = metrics.makespan_s === null ? '–' : shownSeconds(metrics.makespan_s)
  return factsOf([
    [title, `seed ${seed}, ${shownSeconds(virtual_s)} of virtual time`],
    [
      'tasks',
      `${tasks.submitted} submitted, ${tasks.completed} completed, ` +
        `${tasks.failed} failed, ${tasks.unfinished} unfinished${fitNowhereText(tasks.fit_nowhere)}`,
    ],
    ['utilization', shownPercent(metrics.utilization_percent)],
    [
      'starvation',
      `${shownPercent(starvation.total)} = queue ${shownPercent(starvation.queue)} + swap ` +
        `${shownPercent(starvation.swap)} + compute ${shownPercent(starvation.compute)}`,
    ],
    ...(metrics.unsignalled_wait_percent === undefined
      ? []
      : [['unsignalled wait', shownPercent(metrics.unsignalled_wait_percent)] as const]),
    ['queue wait', spread(metrics.queue_wait_s, shownSeconds)],
    ...wakeLine(metrics),
    ['completion', spread(metrics.jct_s, shownSeconds)],
    ['slowdown', spread(metrics.slowdown, (value) => value.toFixed(2))],
    ['makespan', makespan],
    [
      'swaps',
      `${metrics.swaps_per_hour.toFixed(1)} an hour, ${metrics.swapped_gib_per_hour.toFixed(1)} ` +
        `GiB an hour, Jain's index ${shownNumber(metrics.swap_jain, 3)}`,
    ],
    ['digest', digest ?? '–'],
  ])
}

function wakeLine({ wake_s, wake_parts_s }: Metrics): readonly (readonly [string, string])[] {
  if (wake_s === undefined || wake_parts_s === undefined) return []
  const { wait, swap_out, swap_in } = wake_parts_s
  const copies = `swap-out ${shownSeconds(swap_out)} + swap-in ${shownSeconds(swap_in)}`
  return [['wake', `${spread(wake_s, shownSeconds)} (mean = wait ${shownSeconds(wait)} + ${copies})`]]
}

function spread(values: Distribution | null, show: (value: number) => string): string {
  if (values === null) return '–'
  const { mean, p50, p95, p99 } = values
  return `mean ${show(mean)}, p50 ${show(p50)}, p95 ${show(p95)}, p99 ${show(p99)}`
}

function fitNowhereText(count: number | undefined): string {
  if (count === undefined) return ''
  return `, ${count} of them do not fit on any node that is up and are not included in any figure below`
}
