/** A planned change: the differences, the impact, and the button to apply it. */
import { createSignal, onMount, Show, type JSX } from 'solid-js'
import type { ImpactBody } from '../../../controller/api/config/impact-schema.ts'
import { Impact } from '../../components/impact.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { isLowering, shown, type Difference } from '../../format/config-fields.ts'

export interface Plan {
  readonly title: string
  readonly changes: readonly Difference[]
  readonly impact: ImpactBody
}

const COLUMNS: readonly Column<Difference>[] = [
  { name: 'Field', cell: (row) => <code class="text">{row().name}</code> },
  {
    name: 'Change',
    cell: (row) => (
      <>
        {shown(row().before)} → <strong>{shown(row().after)}</strong>
      </>
    ),
  },
]

export interface PlanPanelProps {
  readonly plan: Plan
  /** Why it cannot be applied; null: it can. */
  readonly whyNot: string | null
  readonly isBusy: boolean
  readonly onApply: () => void
  readonly onBack: () => void
}

export function PlanPanel(props: PlanPanelProps): JSX.Element {
  let heading!: HTMLHeadingElement
  const [isSure, setSure] = createSignal(false)
  const asksTwice = (): boolean => isLowering(props.plan.changes)
  onMount(() => heading.focus())
  return (
    <section class="card stack" aria-label="Plan">
      <h2 ref={heading} tabindex="-1">
        {props.plan.title}
      </h2>
      <Table
        name="Differences"
        isHeadHidden
        columns={COLUMNS}
        rows={props.plan.changes}
        idOf={({ name }) => name}
      />
      <Show when={asksTwice()}>
        <label>
          <input
            type="checkbox"
            checked={isSure()}
            onChange={(event) => setSure(event.currentTarget.checked)}
          />{' '}
          This lowers the commit limit. No task is swapped out immediately, but new tasks may wait longer.
          Apply it anyway.
        </label>
      </Show>
      <div class="row">
        <button
          class="primary"
          onClick={() => props.onApply()}
          disabled={props.whyNot !== null || props.isBusy || (asksTwice() && !isSure())}
        >
          Apply
        </button>
        <button onClick={() => props.onBack()}>Back</button>
        <span class="quiet" role="status">
          {props.whyNot ?? ''}
        </span>
      </div>
      <Impact impact={props.plan.impact} />
    </section>
  )
}
