/** The configuration: every field with its meaning, planned changes, and the history. */
import { useQuery } from '@tanstack/solid-query'
import { useSearchParams } from '@solidjs/router'
import { createMemo, For, onMount, Show, type JSX } from 'solid-js'
import type { ConfigBody } from '../../../controller/api/config/schema.ts'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { Field } from './field.tsx'
import { fieldsOf, groupsOf, type OpenApi } from '../../format/config-fields.ts'
import { createChange, type ChangeProps } from './change.ts'
import { History } from './history.tsx'
import styles from './settings.module.css'
import { PlanPanel } from './plan-panel.tsx'
import { Conflict } from './conflict.tsx'

export default function Settings(): JSX.Element {
  const { api } = useCluster()
  const description = useQuery(() => ({
    queryKey: ['openapi'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<OpenApi>('/openapi.json', {}, signal),
    staleTime: Infinity,
    gcTime: Infinity,
  }))
  const config = useQuery(() => ({
    queryKey: ['config'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.send<ConfigBody>('GET', '/config', { signal }),
  }))
  const fields = createMemo(() => (description.data === undefined ? [] : fieldsOf(description.data)))
  return (
    <div class="stack">
      <h1>Settings</h1>
      <QueryState query={description}>
        {() => (
          <QueryState query={config}>
            {(answer) => <Form fields={fields()} live={answer().body} etag={answer().etag} />}
          </QueryState>
        )}
      </QueryState>
    </div>
  )
}

function Form(props: ChangeProps): JSX.Element {
  const { session } = useCluster()
  const change = createChange(props)
  const proposed = useProposed(change)
  useLinkedField()
  const submit = (event: Event): void => {
    event.preventDefault()
    void change.makePlan()
  }
  const whyNot = (): string | null =>
    change.isConflict() ? 'The configuration was changed by another user.' : session.whyNot('operator')
  return (
    <>
      <p class="quiet">
        {props.live.source === 'persisted'
          ? `Stored as revision ${props.live.revision}.`
          : 'The settings come from the environment and the defaults. Nothing is stored yet.'}
      </p>
      <Show when={change.isConflict()}>
        <Conflict
          before={change.against().config}
          now={props.live}
          onKeep={change.rebase}
          onDiscard={change.forget}
        />
      </Show>
      <Show when={proposed()}>{(words) => <p role="status">{words()}</p>}</Show>
      <div class={styles['columns']}>
        <form
          id="configuration"
          class="card stack"
          aria-label="Configuration"
          onSubmit={(event) => submit(event)}
        >
          <For each={groupsOf(props.fields)}>
            {(group) => (
              <fieldset class={styles['group']}>
                <legend>{group.name}</legend>
                <For each={group.fields}>
                  {(field) => (
                    <Field
                      field={field}
                      text={change.textFor(field)}
                      live={props.live[field.name]}
                      problem={change.problemOf(field)}
                      onType={(text) => change.type(field.name, text)}
                    />
                  )}
                </For>
              </fieldset>
            )}
          </For>
        </form>
        <div class={styles['aside']}>
          <Pending change={change} fields={props.fields.length} />
          <Show when={change.plan()}>
            {(made) => (
              <PlanPanel
                plan={made()}
                whyNot={whyNot()}
                isBusy={change.isBusy()}
                onApply={() => void change.apply()}
                onBack={change.dropPlan}
              />
            )}
          </Show>
        </div>
      </div>
      <History live={props.live} etag={props.etag} />
    </>
  )
}

/** The entered changes, and the buttons, which stay in view. */
function Pending(props: {
  readonly change: ReturnType<typeof createChange>
  readonly fields: number
}): JSX.Element {
  return (
    <section class="card" aria-label="Change">
      <p role="status">
        {props.change.changes().length === 0
          ? 'No changes.'
          : `${props.change.changes().length} of ${props.fields} fields changed.`}
      </p>
      <Show when={props.change.problem()}>
        {(error) => (
          <p class="bad" role="alert">
            {error().message}
          </p>
        )}
      </Show>
      <div class="row">
        <button
          class="primary"
          type="submit"
          form="configuration"
          disabled={!props.change.isValid() || props.change.changes().length === 0 || props.change.isBusy()}
        >
          Plan change
        </button>
        <button
          type="button"
          onClick={() => props.change.forget()}
          disabled={Object.keys(props.change.typed()).length === 0}
        >
          Discard changes
        </button>
      </div>
    </section>
  )
}

/** `?field=NAME`, a link of the palette: the field is in view and has the focus. */
function useLinkedField(): void {
  const [search] = useSearchParams<{ field?: string }>()
  onMount(() => document.getElementById(`field-${search.field ?? ''}`)?.focus())
}

/**
 * `?propose=NN`, a link of the planner and of the dashboard: enters the percentage as if it were typed, and
 * plans it. It changes nothing by itself.
 */
function useProposed(change: ReturnType<typeof createChange>): () => string | null {
  const [search, setSearch] = useSearchParams<{ propose?: string }>()
  const text = search.propose
  if (text === undefined) return () => null
  onMount(() => {
    change.type('default_vram_overcommit_percent', text)
    // A reload must not overwrite later input.
    setSearch({ propose: null }, { replace: true })
    void change.makePlan()
  })
  return () =>
    Object.keys(change.typed()).length === 0
      ? null
      : `Proposed: ${text}%. Nothing changes until you apply it.`
}
