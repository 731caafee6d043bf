/**
 * A row for each combination of the other fields: its recommended percentage with the results. The selected
 * combination is shown below in full.
 */
import { createMemo, type JSX } from 'solid-js'
import type { CandidateBody } from '../../../controller/api/simulations/sweep-report-schema.ts'
import { percent } from '../../format/figures.ts'
import { Prose } from '../../components/prose.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { fieldColumns, figureColumn, objectiveColumns } from './columns.tsx'
import { bestOf, type Combination, noneSentence } from './combinations.ts'
import styles from './planner.module.css'

export interface CombinationTableProps {
  readonly combinations: readonly Combination[]
  readonly shown: Combination
  readonly onShow: (combination: Combination) => void
}

export function CombinationTable(props: CombinationTableProps): JSX.Element {
  const best = createMemo(() => bestOf(props.combinations))
  const columns = (): readonly Column<Combination>[] => [
    {
      name: 'Shown below',
      cell: (row) => (
        <>
          <input
            type="radio"
            name="combination"
            aria-label={`Show ${row().name}`}
            checked={row().name === props.shown.name}
            onChange={() => props.onShow(row())}
          />
          {row() === best() ? ' best' : null}
        </>
      ),
    },
    ...fieldColumns(props.combinations[0]),
    {
      name: 'Recommended overcommit',
      isNumber: true,
      cell: (row) => {
        const candidate = candidateOf(row())
        if (candidate === undefined) return 'none'
        const isNone = row().advice.recommended_percent === null
        return `${isNone ? 'none; closest ' : ''}${candidate.overcommit_percent}%`
      },
    },
    figureColumn(
      'Utilization, mean',
      (row) => candidateOf(row)?.utilization_percent?.mean,
      percent,
      'No time passed.',
    ),
    ...objectiveColumns(props.combinations[0]?.advice.objectives ?? [], candidateOf),
  ]
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
      <Table
        id="combinations"
        name="Results for each combination"
        columns={columns()}
        rows={props.combinations}
        rowClassOf={(row) => (row === best() ? styles['recommended'] : undefined)}
      />
    </section>
  )
}

/** The recommended percentage; if none meets the objectives, the one that comes closest. */
function candidateOf({ advice }: Combination): CandidateBody | undefined {
  const { recommended_percent: recommended, caveats, candidates } = advice
  const percentage = recommended ?? caveats.find(({ kind }) => kind === 'none_keeps')?.nearest_percent
  return candidates.find(({ overcommit_percent }) => overcommit_percent === percentage)
}
