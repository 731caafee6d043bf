/**
 * The effects of a change, from a dry run: figures before and after, over-committed GPUs, tasks that would
 * fit, and the forecast, or the reason for its absence.
 */
import { Show, type JSX } from 'solid-js'
import type { ImpactBody } from '../../controller/api/config/impact-schema.ts'
import { mib, plural, whole } from '../format/figures.ts'
import { noForecastWords } from '../format/forecast.ts'
import { Table, type Column } from '../design/table.tsx'
import { Forecast } from './forecast.tsx'

const TOTALS = [
  ['Schedulable VRAM', 'effective_schedulable_mib'],
  ['Commit limit', 'commit_limit_mib'],
  ['Over-committed', 'over_committed_mib'],
  ['Reserve deficit', 'reserve_deficit_mib'],
] as const

const NODE_COLUMNS: readonly Column<ImpactBody['nodes'][number]>[] = [
  { name: 'Node', class: 'text', cell: (node) => node().name },
  {
    name: 'schedulable before',
    isNumber: true,
    cell: (node) => mib(node().before.effective_schedulable_mib),
  },
  { name: 'after', isNumber: true, cell: (node) => mib(node().after.effective_schedulable_mib) },
]

export function Impact(props: { readonly impact: ImpactBody }): JSX.Element {
  const side = (name: 'before' | 'after'): Column<(typeof TOTALS)[number]> => ({
    name,
    isNumber: true,
    cell: (row) => mib(props.impact.total[name][row()[1]]),
  })
  const columns: readonly Column<(typeof TOTALS)[number]>[] = [
    { name: 'All GPUs', cell: (row) => row()[0] },
    side('before'),
    side('after'),
  ]
  return (
    <div class="stack">
      <Table name="Before and after" columns={columns} rows={TOTALS} />
      <ul>
        <Show when={props.impact.next_cycle}>
          {(cycle) => (
            <li>
              {plural(cycle().starts, 'pending task', 'pending tasks')} would start immediately, and{' '}
              {whole(cycle().starts_after_swaps)} more would start after swap-outs.{' '}
              {plural(cycle().swap_outs, 'task', 'tasks')}
              {` with ${mib(cycle().swap_out_mib)}`} would be swapped out.
            </li>
          )}
        </Show>
        <li>
          {plural(props.impact.pending.would_fit, 'more pending task', 'more pending tasks')} would fit
          <Show when={props.impact.pending.cut}>
            {' '}
            (only the first {whole(props.impact.pending.looked_at)} tasks were examined)
          </Show>
          .
        </li>
        <Show when={props.impact.pending.infeasible > 0}>
          <li>
            {plural(props.impact.pending.infeasible, 'pending task', 'pending tasks')} could no longer be
            placed.
          </li>
        </Show>
        <Show when={props.impact.gpu_over_count > 0}>
          <li>
            {plural(props.impact.gpu_over_count, 'GPU', 'GPUs')} would be over the commit limit. No task is
            swapped out immediately; the excess shrinks as tasks end or are swapped out for others.
          </li>
        </Show>
        <Show when={props.impact.residency_impossible_count > 0}>
          <li>
            {plural(props.impact.residency_impossible_count, 'placed task', 'placed tasks')} could not return
            to VRAM.
          </li>
        </Show>
      </ul>
      <Show when={props.impact.nodes.length > 0}>
        <details>
          <summary>
            {plural(props.impact.node_count, 'node changes', 'nodes change')}
            <Show when={props.impact.node_count > props.impact.nodes.length}>
              ; showing the first {props.impact.nodes.length}
            </Show>
          </summary>
          <Table name="Nodes that change" columns={NODE_COLUMNS} rows={props.impact.nodes} />
        </details>
      </Show>
      <section aria-label="Forecast">
        <h3>Forecast</h3>
        <Show
          when={props.impact.forecast}
          fallback={<p class="quiet">— {noForecastWords(props.impact.forecast_unavailable_because)}</p>}
        >
          {(forecast) => <Forecast forecast={forecast()} />}
        </Show>
      </section>
    </div>
  )
}
