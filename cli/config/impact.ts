/** Formats the result of a dry run. */
import type { ChangedConfig } from '../../clients/typescript/client.ts'
import type { Field } from '../output/table.ts'

type Impact = NonNullable<ChangedConfig['impact']>

/** Maximum names in a line. */
const MAX_NAMES = 5

export function impactFields(impact: Impact): readonly Field[] {
  const { before, after } = impact.total
  const { pending } = impact
  const fields: Field[] = [
    ['dry run', 'nothing was changed'],
    [
      'commit limit',
      `${before.commit_limit_mib} → ${after.commit_limit_mib} MiB on ${impact.node_count} nodes`,
    ],
    ['schedulable', `${before.effective_schedulable_mib} → ${after.effective_schedulable_mib} MiB`],
    ['over the limit', `${before.over_committed_mib} → ${after.over_committed_mib} MiB`],
    [
      'below the reserve',
      `${before.reserve_deficit_mib} → ${after.reserve_deficit_mib} MiB, on ${impact.gpu_over_count} ` +
        'GPUs in all',
    ],
    ['immediately', cycleWords(impact.next_cycle)],
    [
      'would now fit',
      `${pending.would_fit}${some(pending.would_fit_ids)} that do not fit anywhere now, each counted alone`,
    ],
    ['could never be placed', `${pending.infeasible}${some(pending.infeasible_ids)}`],
    [
      'could not return',
      `${impact.residency_impossible_count}${some(impact.residency_impossible.map(({ task_id: id }) => id))}`,
    ],
  ]
  if (pending.cut)
    fields.push(['evaluated', `${pending.looked_at} of ${pending.of} pending tasks, up to the time limit`])
  fields.push([
    'forecast',
    impact.forecast === null ? impact.forecast_unavailable_because : impact.forecast.sentence,
  ])
  return fields
}

/** What the next cycle would decide. */
function cycleWords(cycle: Impact['next_cycle']): string {
  if (cycle === null) return '- (too many open tasks to simulate)'
  const { starts, starts_after_swaps: later, swap_outs: swapOuts, swap_out_mib: mib } = cycle
  const leave = swapOuts === 0 ? '' : `; ${plural(swapOuts, 'task')} would start to swap out, ${mib} MiB`
  return `${plural(starts + later, 'pending task')} placed: ${starts} now, ${later} after swaps${leave}`
}

function plural(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** Null when no GPU is over its limit. */
export function overLine({
  gpus,
  over_committed_mib: over,
  reserve_deficit_mib: deficit,
}: ChangedConfig['over']): string | null {
  if (gpus === 0) return null
  return (
    `${gpus} ${gpus === 1 ? 'GPU is' : 'GPUs are'} over the limit: ${over} MiB over-committed, ${deficit} ` +
    'MiB resident in the reserve; no task is swapped out for that'
  )
}

function some(ids: readonly string[]): string {
  if (ids.length === 0) return ''
  return ` (${ids.slice(0, MAX_NAMES).join(', ')}${ids.length > MAX_NAMES ? ', …' : ''})`
}
