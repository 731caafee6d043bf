/** A row for each percentage: its results over the seeds, and whether it meets the objectives. */
import { For, Show, type JSX } from 'solid-js'
import type { CandidateBody, SweepSummaryBody } from '../../../controller/api/schema/sweep-report.ts'
import { percent, seconds, UNKNOWN } from '../../format/figures.ts'
import { JudgedCells, JudgedHeads } from './columns.tsx'
import type { Combination } from './combinations.ts'
import { Figure } from './field.tsx'
import styles from './planner.module.css'

/** Limit for the DOM. */
const MAX_ROWS = 100

export function PercentTable(props: { readonly combination: Combination }): JSX.Element {
  const rows = (): readonly (readonly [CandidateBody, SweepSummaryBody | undefined])[] =>
    props.combination.advice.candidates
      .slice(0, MAX_ROWS)
      .map((each) => [
        each,
        props.combination.summary.find(
          ({ overcommit_percent }) => overcommit_percent === each.overcommit_percent,
        ),
      ])
  const hasUnheard = (): boolean =>
    props.combination.summary.some(({ unheard_percent }) => (unheard_percent?.mean ?? 0) > 0)
  const isRecommended = (candidate: CandidateBody): boolean =>
    candidate.overcommit_percent === props.combination.advice.recommended_percent
  return (
    <section class="card" aria-label="Percentages">
      <h2>Percentages</h2>
      <Show when={props.combination.advice.candidates.length > MAX_ROWS}>
        <p class="quiet">The first {MAX_ROWS} are shown; the files have all.</p>
      </Show>
      <div class="scroll" tabindex="0" role="group" aria-label="Results of each percentage">
        <table id="percentages">
          <thead>
            <tr>
              <th scope="col" class="number">
                Overcommit
              </th>
              <JudgedHeads objectives={props.combination.advice.objectives} />
              <th scope="col" class="number">
                Utilization, mean (p10–p90)
              </th>
              <th scope="col" class="number">
                Starvation, mean (p10–p90)
              </th>
              <Show when={hasUnheard()}>
                <th
                  scope="col"
                  class="number"
                  title={
                    'Wait of swapped-out tasks with work, without a signal for it. Not part of ' +
                    'starvation.'
                  }
                >
                  Unheard, mean (p10–p90)
                </th>
              </Show>
              <th scope="col" class="number">
                Queue wait p95
              </th>
              <th scope="col" class="number">
                Swaps per hour
              </th>
            </tr>
          </thead>
          <tbody>
            <For each={rows()}>
              {([candidate, summary]) => (
                <tr class={isRecommended(candidate) ? styles['recommended'] : undefined}>
                  <th scope="row" class="number">
                    {candidate.overcommit_percent} %
                    {isRecommended(candidate) ? <span class="visually-hidden">, recommended</span> : null}
                  </th>
                  <JudgedCells objectives={candidate.objectives} />
                  <td class="number">
                    <Figure
                      value={candidate.utilization_percent?.mean ?? null}
                      shown={percent(candidate.utilization_percent?.mean)}
                    />
                    {bandWords(candidate.utilization_percent)}
                  </td>
                  <td class="number">
                    <Figure
                      value={summary?.starvation_percent.total?.mean ?? null}
                      shown={percent(summary?.starvation_percent.total?.mean)}
                    />
                    {bandWords(summary?.starvation_percent.total ?? null)}
                  </td>
                  <Show when={hasUnheard()}>
                    <td class="number">
                      <Figure
                        value={summary?.unheard_percent?.mean ?? null}
                        shown={percent(summary?.unheard_percent?.mean)}
                      />
                      {bandWords(summary?.unheard_percent ?? null)}
                    </td>
                  </Show>
                  <td
                    class="number"
                    title={summary?.queue_wait_s.p95 === null ? 'No task started.' : undefined}
                  >
                    {seconds(summary?.queue_wait_s.p95?.mean)}
                  </td>
                  <td class="number">{summary?.swaps_per_hour?.mean.toFixed(1) ?? UNKNOWN}</td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </section>
  )
}

function bandWords(band: { readonly p10: number; readonly p90: number } | null): string {
  return band === null ? '' : ` (${band.p10.toFixed(1)}–${band.p90.toFixed(1)})`
}
