/** A decision: one sentence, then the tables of the candidates, then the JSON. */
import { Show, type JSX } from 'solid-js'
import type { DecisionBody } from '../../controller/api/observe/decision-schema.ts'
import { clockTime } from '../format/clock.ts'
import { mib, seconds, whole } from '../format/figures.ts'
import { choiceWords, levelWords } from '../format/victims.ts'
import { Table, type Column } from '../design/table.tsx'
import { TaskLink } from './links.tsx'

export interface DecisionProps {
  readonly decision: DecisionBody
  /** The sentence is shown next to the details. */
  readonly hasSentence?: boolean
}

export function DecisionDetails(props: DecisionProps): JSX.Element {
  return (
    <div class="stack">
      <Show when={props.hasSentence !== true}>
        <p class="text">
          <strong>{props.decision.sentence}</strong>
        </p>
      </Show>
      <p class="quiet text">
        Decision {props.decision.number}, made at {clockTime(props.decision.at)} for{' '}
        <TaskLink class="" id={props.decision.task_id} name={props.decision.task_name} />, rule{' '}
        {props.decision.rule}
        <Show when={props.decision.waited_seconds !== null}>
          ; the task waited for {seconds(props.decision.waited_seconds)}
        </Show>
        .
      </p>
      <Candidates decision={props.decision} />
      <GpuChoices decision={props.decision} />
      <details>
        <summary>As JSON</summary>
        <pre tabindex="0">{JSON.stringify(props.decision, null, 2)}</pre>
      </details>
    </div>
  )
}

const CANDIDATES: readonly Column<DecisionBody['candidates'][number]>[] = [
  {
    name: 'Task',
    class: 'text',
    cell: (row) => (
      <>
        <TaskLink class="" id={row().task_id} name={row().task_name ?? row().task_id} /> on GPU {row().gpu}
      </>
    ),
  },
  { name: 'Level', cell: (row) => levelWords(row().level, row().above_request) },
  { name: 'Frees', isNumber: true, cell: (row) => mib(row().mib) },
  { name: 'Idle for', isNumber: true, cell: (row) => seconds(row().idle_seconds) },
  { name: 'Chosen', cell: (row) => choiceWords(row().chosen_by) },
]

function Candidates(props: { readonly decision: DecisionBody }): JSX.Element {
  const omitted = (): string =>
    props.decision.candidates_left_out > 0 ? `; ${props.decision.candidates_left_out} more are omitted` : ''
  return (
    <Show when={props.decision.candidates.length > 0}>
      <Table
        name="Swap-out candidates"
        caption={`Swap-out candidates, victims first${omitted()}`}
        columns={CANDIDATES}
        rows={props.decision.candidates}
      />
    </Show>
  )
}

const GPUS: readonly Column<DecisionBody['gpus_considered'][number]>[] = [
  { name: 'GPU', class: 'text', cell: (row) => `${row().node_name}:${row().gpu}` },
  { name: 'First key (MiB)', isNumber: true, cell: (row) => whole(row().key1) },
  { name: 'Second key (MiB)', isNumber: true, cell: (row) => whole(row().key2) },
  { name: 'Chosen', cell: (row) => (row().chosen ? 'yes' : 'no') },
]

function GpuChoices(props: { readonly decision: DecisionBody }): JSX.Element {
  return (
    <Show when={props.decision.gpus_considered.length > 0}>
      <Table
        name="GPUs on which the task fits"
        caption={
          'GPUs on which the task fits, best first: sorted by the first key, then by the second key' +
          (props.decision.gpus_more ? '; more GPUs are omitted' : '')
        }
        columns={GPUS}
        rows={props.decision.gpus_considered}
      />
    </Show>
  )
}
