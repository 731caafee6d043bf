/**
 * A row for each run, with all digits, so that the recommendation can be recomputed. Up to six runs can be
 * selected for a comparison.
 */
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { SweptRunBody } from '../../../controller/api/schema/sweep-report.ts'
import { percent, seconds, UNKNOWN } from '../../format/figures.ts'
import { FieldHeads } from './columns.tsx'
import { settingsText } from './combinations.ts'
import { Figure } from './field.tsx'
import { MAX_COMPARED, objectiveFigure, objectiveWords } from './figures.ts'
import styles from './planner.module.css'

export interface RunTableProps {
  readonly runs: readonly SweptRunBody[]
  readonly objectives: readonly string[]
  readonly picked: readonly string[]
  readonly onPick: (keys: readonly string[]) => void
}

const PAGE = 100
/** The start of the digest is enough to distinguish two runs. */
const HASH_CHARACTERS = 12

/** For the URL, where keys are separated by commas. */
export function runKey({ overcommit_percent, seed, settings }: SweptRunBody): string {
  return [overcommit_percent, seed, ...Object.values(settings)].join('-')
}

/** `50 %, seed 2, fleet.0.count=4` */
export function runName({ overcommit_percent, seed, settings }: SweptRunBody): string {
  return [`${overcommit_percent} %`, `seed ${seed}`, settingsText(settings)]
    .filter((each) => each !== '')
    .join(', ')
}

export function RunTable(props: RunTableProps): JSX.Element {
  const [from, setFrom] = createSignal(0)
  const shown = () => props.runs.slice(from(), from() + PAGE)
  const fields = (): readonly string[] => Object.keys(props.runs[0]?.settings ?? {})
  const toggle = (key: string): void =>
    props.onPick(
      props.picked.includes(key) ? props.picked.filter((each) => each !== key) : [...props.picked, key],
    )
  return (
    <section class="card" aria-label="Runs">
      <h2>Runs</h2>
      <div class="row">
        <span class="quiet">
          Select two to {MAX_COMPARED} to compare them. Two runs with the same hash are identical.
        </span>
      </div>
      <Show when={props.runs.length > PAGE}>
        <nav class="row" aria-label="Pages of the runs">
          <button disabled={from() === 0} onClick={() => setFrom(from() - PAGE)}>
            Back
          </button>
          <button disabled={from() + PAGE >= props.runs.length} onClick={() => setFrom(from() + PAGE)}>
            Next
          </button>
          <span class="quiet">
            {from() + 1} to {Math.min(from() + PAGE, props.runs.length)} of {props.runs.length}
          </span>
        </nav>
      </Show>
      <div class="scroll" tabindex="0" role="group" aria-label="Metrics of each run">
        <table id="runs">
          <thead>
            <tr>
              <th scope="col">Compare</th>
              <FieldHeads fields={fields()} />
              <th scope="col" class="number">
                Overcommit
              </th>
              <th scope="col" class="number">
                Seed
              </th>
              <th scope="col" class="number">
                Utilization
              </th>
              <th scope="col" class="number">
                Starvation
              </th>
              <th scope="col" class="number">
                Queue wait p95
              </th>
              <For each={props.objectives}>
                {(objective) => (
                  <th scope="col" class="number">
                    {objective}
                  </th>
                )}
              </For>
              <th scope="col">Run hash</th>
            </tr>
          </thead>
          <tbody>
            <For each={shown()}>
              {(run) => (
                <tr>
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Compare ${runName(run)}`}
                      checked={props.picked.includes(runKey(run))}
                      disabled={!props.picked.includes(runKey(run)) && props.picked.length >= MAX_COMPARED}
                      onChange={() => toggle(runKey(run))}
                    />
                  </td>
                  <For each={fields()}>
                    {(field) => <td class="number">{String(run.settings[field])}</td>}
                  </For>
                  <td class="number">
                    <Figure value={run.overcommit_percent} shown={`${run.overcommit_percent} %`} />
                  </td>
                  <td class="number">{run.seed}</td>
                  <td class="number">
                    <Figure
                      value={run.metrics.utilization_percent}
                      shown={percent(run.metrics.utilization_percent)}
                      what="No time passed."
                    />
                  </td>
                  <td class="number">
                    <Figure
                      value={run.metrics.starvation_percent.total}
                      shown={percent(run.metrics.starvation_percent.total)}
                    />
                  </td>
                  <td class="number">
                    <Figure
                      value={run.metrics.queue_wait_s?.p95 ?? null}
                      shown={seconds(run.metrics.queue_wait_s?.p95)}
                      what="No task started."
                    />
                  </td>
                  <For each={props.objectives}>
                    {(objective) => {
                      const value = objectiveFigure(objective, run.metrics)
                      return (
                        <td class="number">
                          <Figure
                            value={value}
                            shown={objectiveWords(objective, value)}
                            what="The run has no such metric."
                          />
                        </td>
                      )
                    }}
                  </For>
                  <td class={styles['hash']} title={run.digest ?? 'No hash.'}>
                    <data value={run.digest ?? ''}>{run.digest?.slice(0, HASH_CHARACTERS) ?? UNKNOWN}</data>
                  </td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </section>
  )
}
