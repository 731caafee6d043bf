/**
 * A row for each run, with all digits, so that the recommendation can be recomputed. Up to six runs can be
 * selected for a comparison.
 */
import { createSignal, Show, type JSX } from 'solid-js'
import type { SweptRunBody } from '../../../controller/api/simulations/sweep-report-schema.ts'
import { percent, seconds, UNKNOWN } from '../../format/figures.ts'
import { Table, type Column } from '../../design/table.tsx'
import { fieldColumns, figureColumn } from './columns.tsx'
import { settingsText } from './combinations.ts'
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

/** `50%, seed 2, fleet.0.count=4` */
export function runName({ overcommit_percent, seed, settings }: SweptRunBody): string {
  return [`${overcommit_percent}%`, `seed ${seed}`, settingsText(settings)]
    .filter((each) => each !== '')
    .join(', ')
}

const METRICS: readonly Column<SweptRunBody>[] = [
  figureColumn(
    'Overcommit',
    (run) => run.overcommit_percent,
    (value) => `${value}%`,
  ),
  { name: 'Seed', isNumber: true, cell: (run) => run().seed },
  figureColumn('Utilization', ({ metrics }) => metrics.utilization_percent, percent, 'No time passed.'),
  figureColumn('Starvation', ({ metrics }) => metrics.starvation_percent.total, percent),
  figureColumn('Queue wait p95', ({ metrics }) => metrics.queue_wait_s?.p95, seconds, 'No task started.'),
  figureColumn(
    'Wake p95',
    ({ metrics }) => metrics.wake_s?.p95,
    seconds,
    'No swapped-out task returned to VRAM.',
  ),
]

export function RunTable(props: RunTableProps): JSX.Element {
  const [from, setFrom] = createSignal(0)
  const shown = () => props.runs.slice(from(), from() + PAGE)
  const toggle = (key: string): void =>
    props.onPick(
      props.picked.includes(key) ? props.picked.filter((each) => each !== key) : [...props.picked, key],
    )
  const columns = (): readonly Column<SweptRunBody>[] => [
    {
      name: 'Compare',
      cell: (run) => (
        <input
          type="checkbox"
          aria-label={`Compare ${runName(run())}`}
          checked={props.picked.includes(runKey(run()))}
          disabled={!props.picked.includes(runKey(run())) && props.picked.length >= MAX_COMPARED}
          onChange={() => toggle(runKey(run()))}
        />
      ),
    },
    ...fieldColumns(props.runs[0]),
    ...METRICS,
    ...props.objectives.map((objective) =>
      figureColumn<SweptRunBody>(
        objective,
        ({ metrics }) => objectiveFigure(objective, metrics),
        (value) => objectiveWords(objective, value),
        'The run does not have this metric.',
      ),
    ),
    {
      name: 'Run hash',
      cell: (run) => (
        <data class={styles['hash']} value={run().digest ?? ''} title={run().digest ?? 'No hash.'}>
          {run().digest?.slice(0, HASH_CHARACTERS) ?? UNKNOWN}
        </data>
      ),
    },
  ]
  return (
    <section class="card" aria-label="Runs">
      <h2>Runs</h2>
      <div class="row">
        <span class="quiet">
          Select 2 to {MAX_COMPARED} runs to compare them. Two runs with the same hash are identical.
        </span>
      </div>
      <Show when={props.runs.length > PAGE}>
        <nav class="row" aria-label="Run pages">
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
      <Table id="runs" name="Metrics for each run" columns={columns()} rows={shown()} />
    </section>
  )
}
