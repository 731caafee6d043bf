/**
 * The effects of a change, from a dry run: figures before and after, over-committed GPUs, tasks that would
 * fit, and the forecast, or the reason for its absence.
 */
import { For, Show, type JSX } from 'solid-js'
import type { ImpactBody } from '../../controller/api/schema/impact.ts'
import { mib, whole } from '../format/figures.ts'
import { noForecastWords } from '../format/forecast.ts'
import { Forecast } from './forecast.tsx'

export function Impact(props: { readonly impact: ImpactBody }): JSX.Element {
  const total = () => props.impact.total
  return (
    <div class="stack">
      <div class="scroll" tabindex="0" role="group" aria-label="Before and after">
        <table>
          <thead>
            <tr>
              <th scope="col">All GPUs</th>
              <th scope="col" class="number">
                before
              </th>
              <th scope="col" class="number">
                after
              </th>
            </tr>
          </thead>
          <tbody>
            <For
              each={
                [
                  ['Schedulable VRAM', 'effective_schedulable_mib'],
                  ['Commit limit', 'commit_limit_mib'],
                  ['Over-committed', 'over_committed_mib'],
                  ['Reserve deficit', 'reserve_deficit_mib'],
                ] as const
              }
            >
              {([name, key]) => (
                <tr>
                  <td>{name}</td>
                  <td class="number">{mib(total().before[key])}</td>
                  <td class="number">{mib(total().after[key])}</td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
      <ul>
        <Show when={props.impact.next_cycle}>
          {(cycle) => (
            <li>
              Immediately {whole(cycle().starts)} pending tasks would start, and{' '}
              {whole(cycle().starts_after_swaps)} more after swap-outs; {whole(cycle().swap_outs)} tasks with{' '}
              {mib(cycle().swap_out_mib)} would begin to swap out.
            </li>
          )}
        </Show>
        <li>
          {whole(props.impact.pending.would_fit)} pending tasks that fit nowhere now would fit
          <Show when={props.impact.pending.cut}>
            {' '}
            (of the first {whole(props.impact.pending.looked_at)} examined)
          </Show>
          .
        </li>
        <li>
          {whole(props.impact.pending.infeasible)} pending tasks that could be placed now could never be
          placed.
        </li>
        <li>
          {whole(props.impact.gpu_over_count)} GPUs would be over their commit limit. No task is evicted; the
          excess shrinks as tasks end or are swapped out for others.
        </li>
        <li>{whole(props.impact.residency_impossible_count)} placed tasks could not return to VRAM.</li>
      </ul>
      <Show when={props.impact.nodes.length > 0}>
        <details>
          <summary>
            {whole(props.impact.node_count)} nodes change
            <Show when={props.impact.node_count > props.impact.nodes.length}>
              ; the first {props.impact.nodes.length}
            </Show>
          </summary>
          <div class="scroll" tabindex="0" role="group" aria-label="Nodes that change">
            <table>
              <thead>
                <tr>
                  <th scope="col">Node</th>
                  <th scope="col" class="number">
                    schedulable before
                  </th>
                  <th scope="col" class="number">
                    after
                  </th>
                </tr>
              </thead>
              <tbody>
                <For each={props.impact.nodes}>
                  {(node) => (
                    <tr>
                      <td class="text">{node.name}</td>
                      <td class="number">{mib(node.before.effective_schedulable_mib)}</td>
                      <td class="number">{mib(node.after.effective_schedulable_mib)}</td>
                    </tr>
                  )}
                </For>
              </tbody>
            </table>
          </div>
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
