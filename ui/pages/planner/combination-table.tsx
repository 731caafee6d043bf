/**
 * A row for each combination of the other fields: its recommended percentage with the results. The selected
 * combination is shown below in full.
 */
import { createMemo, For, type JSX } from 'solid-js'
import type { AdviceBody } from '../../../controller/api/schema/sweep-report.ts'
import { percent } from '../../format/figures.ts'
import { Prose } from '../../components/prose.tsx'
import { FieldHeads, JudgedCells, JudgedHeads } from './columns.tsx'
import { bestOf, type Combination, noneSentence } from './combinations.ts'
import { Figure } from './field.tsx'
import styles from './planner.module.css'

export interface CombinationTableProps {
  readonly combinations: readonly Combination[]
  readonly shown: Combination
  readonly onShow: (combination: Combination) => void
}

export function CombinationTable(props: CombinationTableProps): JSX.Element {
  const best = createMemo(() => bestOf(props.combinations))
  const fields = (): readonly string[] => Object.keys(props.combinations[0]?.settings ?? {})
  const objectives = (): readonly string[] => props.combinations[0]?.advice.objectives ?? []
  const sentence = (): string => {
    const found = best()
    if (found === null) return noneSentence(props.combinations.map(({ advice }) => advice))
    return (
      `Best of ${props.combinations.length} combinations: ${found.name}. ` +
      `${found.advice.text.split('\n')[0]}`
    )
  }
  return (
    <section class="card" aria-label="Combinations">
      <h2>Combinations</h2>
      <p class={`${styles['advice']} text`}>
        <Prose text={sentence()} />
      </p>
      <div class="scroll" tabindex="0" role="group" aria-label="Results of each combination">
        <table id="combinations">
          <thead>
            <tr>
              <th scope="col">Shown below</th>
              <FieldHeads fields={fields()} />
              <th scope="col" class="number">
                Recommended overcommit
              </th>
              <th scope="col" class="number">
                Utilization, mean
              </th>
              <JudgedHeads objectives={objectives()} />
            </tr>
          </thead>
          <tbody>
            <For each={props.combinations}>
              {(each) => (
                <tr class={each === best() ? styles['recommended'] : undefined}>
                  <td>
                    <input
                      type="radio"
                      name="combination"
                      aria-label={`Show ${each.name}`}
                      checked={each.name === props.shown.name}
                      onChange={() => props.onShow(each)}
                    />
                    {each === best() ? ' best' : null}
                  </td>
                  <For each={fields()}>
                    {(field) => <td class="number">{String(each.settings[field])}</td>}
                  </For>
                  <Recommended advice={each.advice} />
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </section>
  )
}

/** The recommended percentage; if none meets the objectives, the one that comes closest. */
function Recommended(props: { readonly advice: AdviceBody }): JSX.Element {
  const isNone = (): boolean => props.advice.recommended_percent === null
  const candidate = () => {
    const { recommended_percent: taken, caveats, candidates } = props.advice
    const at = taken ?? caveats.find(({ kind }) => kind === 'none_keeps')?.nearest_percent
    return candidates.find(({ overcommit_percent }) => overcommit_percent === at)
  }
  return (
    <>
      <td class="number">
        {candidate() === undefined
          ? 'none'
          : `${isNone() ? 'none; closest ' : ''}${candidate()?.overcommit_percent} %`}
      </td>
      <td class="number">
        <Figure
          value={candidate()?.utilization_percent?.mean ?? null}
          shown={percent(candidate()?.utilization_percent?.mean)}
          what="No time passed."
        />
      </td>
      <JudgedCells objectives={candidate()?.objectives} />
    </>
  )
}
