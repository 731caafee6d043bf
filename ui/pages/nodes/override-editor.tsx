/**
 * Edits the overrides of a node: enter, plan, then apply to the exact state that was planned for. A change by
 * another user is shown, and the entered values stay.
 */
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { ChangedNodeBody, NodeBody } from '../../../controller/api/nodes/schema.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { ConfirmDialog } from '../../design/confirm-dialog.tsx'
import { Impact } from '../../components/impact.tsx'
import { Problem } from '../../design/problem.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { NodeDifference } from './node-difference.tsx'
import { settingsWords, type OverrideDraft } from './override-draft.ts'
import { createOverride, type TaggedNode } from './override-state.ts'

const MODES = [
  { value: 'inherit', name: 'inherit the global default' },
  { value: 'value', name: 'override, %' },
  { value: 'off', name: 'off (0)' },
] as const

export function OverrideEditor(props: { readonly at: TaggedNode }): JSX.Element {
  const { session } = useCluster()
  const state = createOverride(() => props.at)
  const [isApplying, setApplying] = createSignal(false)
  const whyNotPlan = (): string | null =>
    session.whyNot('operator') ??
    (state.conflict() === null ? null : 'Another user changed these settings. See below.')
  return (
    <section class="card" aria-labelledby="override">
      <h2 id="override">Overcommit and reserve</h2>
      <p>
        Now: <strong>{settingsWords(props.at.node)}</strong>
      </p>
      <form
        class="stack"
        onSubmit={(event) => (event.preventDefault(), whyNotPlan() === null && void state.makePlan())}
      >
        <OvercommitField
          draft={state.draft()}
          problem={state.problemOf('percentProblem')}
          onType={state.type}
        />
        <ReserveField draft={state.draft()} problem={state.problemOf('reserveProblem')} onType={state.type} />
        <div class="row">
          <ActionButton class="primary" whyNot={whyNotPlan()} onClick={() => void state.makePlan()}>
            Plan
          </ActionButton>
          <Show when={state.typed() !== null}>
            <button type="button" onClick={state.reset}>
              Discard changes
            </button>
          </Show>
        </div>
      </form>
      <Show when={state.conflict()}>
        {(begun) => (
          <p class="bad text" role="alert">
            Another user changed these settings. When you started: {settingsWords(begun().node)}; now:{' '}
            {settingsWords(props.at.node)}. Your input is kept.{' '}
            <button onClick={() => state.rebase(props.at)}>Continue with the new settings</button>
          </p>
        )}
      </Show>
      <Problem text={state.problem()} />
      <p class="good" role="status">
        {state.done()}
      </p>
      <Show when={state.plan()?.impact}>
        {(impact) => (
          <div class="stack" id="plan">
            <h3>Impact</h3>
            <div class="row">
              <ActionButton class="primary" whyNot={whyNotPlan()} onClick={() => setApplying(true)}>
                Apply…
              </ActionButton>
            </div>
            <NodeDifference impact={impact()} nodeId={props.at.node.node_id} />
            <Impact impact={impact()} />
          </div>
        )}
      </Show>
      <ConfirmDialog
        isOpen={isApplying()}
        onClose={() => setApplying(false)}
        title={`Change the settings of ${props.at.node.name}?`}
        confirm="Apply"
        isDanger={isLowering(props.at.node, state.plan())}
        run={state.apply}
      >
        <Show when={state.plan()}>
          {(after) => (
            <p>
              The settings change from {settingsWords(props.at.node)} to {settingsWords(after())}.
            </p>
          )}
        </Show>
        <Show when={isLowering(props.at.node, state.plan())}>
          <p class="warn">
            This lowers the commit limit. No task is swapped out immediately; the excess shrinks as tasks end
            or are swapped out for others.
          </p>
        </Show>
      </ConfirmDialog>
    </section>
  )
}

function isLowering(before: NodeBody, after: ChangedNodeBody | null): boolean {
  return after !== null && after.vram.commit_limit_mib < before.vram.commit_limit_mib
}

interface FieldProps {
  readonly draft: OverrideDraft
  readonly problem: string
  readonly onType: (part: Partial<OverrideDraft>) => void
}

function OvercommitField(props: FieldProps): JSX.Element {
  return (
    <fieldset>
      <legend>Overcommit</legend>
      <div class="row">
        <For each={MODES}>
          {(mode) => (
            <label>
              <input
                type="radio"
                name="overcommit"
                checked={props.draft.overcommit === mode.value}
                onChange={() => props.onType({ overcommit: mode.value })}
              />{' '}
              {mode.name}
            </label>
          )}
        </For>
        <input
          aria-label="Overcommit, percent"
          inputMode="numeric"
          size="6"
          disabled={props.draft.overcommit !== 'value'}
          aria-invalid={props.problem !== ''}
          aria-describedby="percent-problem"
          value={props.draft.percent}
          onInput={(event) => props.onType({ percent: event.currentTarget.value })}
        />
      </div>
      <p id="percent-problem" class="bad" role="alert">
        {props.problem}
      </p>
    </fieldset>
  )
}

function ReserveField(props: FieldProps): JSX.Element {
  return (
    <fieldset>
      <legend>Safety reserve per GPU</legend>
      <div class="row">
        <For each={['inherit', 'value'] as const}>
          {(mode) => (
            <label>
              <input
                type="radio"
                name="reserve"
                checked={props.draft.reserve === mode}
                onChange={() => props.onType({ reserve: mode })}
              />{' '}
              {mode === 'inherit' ? 'inherit the global reserve' : 'override, MiB'}
            </label>
          )}
        </For>
        <input
          aria-label="Safety reserve, MiB"
          inputMode="numeric"
          size="9"
          disabled={props.draft.reserve !== 'value'}
          aria-invalid={props.problem !== ''}
          aria-describedby="reserve-problem"
          value={props.draft.reserveMib}
          onInput={(event) => props.onType({ reserveMib: event.currentTarget.value })}
        />
      </div>
      <p id="reserve-problem" class="bad" role="alert">
        {props.problem}
      </p>
    </fieldset>
  )
}
