/** The form of a sweep: workload, percentages, seeds and objectives. */
import { useNavigate, useSearchParams } from '@solidjs/router'
import { createSignal, For, Match, Switch, type JSX } from 'solid-js'
import type { SimulationBody } from '../../../controller/api/simulations/schema.ts'
import { Refused } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { Problem } from '../../design/problem.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { notYet, SOURCE_NAMES, SOURCES, type Chosen, type SourceKind } from '../../scenario/choice.ts'
import { GridFields } from './grid-fields.tsx'
import { LiveSource } from './live-source.tsx'
import { ScenarioEditor } from '../../scenario/scenario-editor.tsx'
import { OtherField } from './other-field.tsx'
import { ShippedSource } from './shipped-source.tsx'
import { createSweepRequest } from './sweep-request.ts'
import { TraceSource } from './trace-source.tsx'
import { useVariedFields } from './use-varied-fields.ts'
import styles from './planner.module.css'

export function SweepForm(): JSX.Element {
  const { api, session, feed } = useCluster()
  const path = usePath()
  const navigate = useNavigate()
  const [search, setSearch] = useSearchParams<{
    source?: string
    scenario?: string
    trace?: string
    percents?: string
    seeds?: string
    keep?: string
    field?: string
    values?: string
  }>()
  const [text, setText] = createSignal('')
  const [choice, setChoice] = createSignal<Chosen>(notYet('Choose a workload.'), { equals: false })
  const [problem, setProblem] = createSignal<Error | null>(null)
  const [isBusy, setBusy] = createSignal(false)
  const source = (): SourceKind => SOURCES.find((each) => each === search.source) ?? 'scenario'
  const set = (values: Parameters<typeof setSearch>[0]): void => {
    setProblem(null)
    setSearch(values, { replace: true })
  }
  const request = createSweepRequest(
    search,
    () => choice().swept,
    () => feed.summary()?.overcommit.default_percent ?? null,
  )
  const fields = useVariedFields(() => choice().part)
  const whyNot = (): string | null =>
    session.whyNot('submitter') ??
    request.whyNot() ??
    choice().whyNot ??
    (isBusy() ? 'Requesting the sweep.' : null)
  const refusalOf = (field: string): string | null => {
    const error = problem()
    return error instanceof Refused
      ? (error.errors.find(({ pointer }) => pointer.startsWith(`/${field}`))?.detail ?? null)
      : null
  }
  const edit = (edited: string): void => {
    setText(edited)
    set({ source: 'text' })
  }
  const run = async (): Promise<void> => {
    const requested = request.body()
    if (requested === null) return
    setBusy(true)
    setProblem(null)
    try {
      const answer = await api.send<SimulationBody>('POST', '/simulations/sweep', {
        body: { ...choice().part, ...requested },
      })
      navigate(path(`/planner/${answer.body.id}`))
    } catch (error) {
      setProblem(error instanceof Error ? error : new Error(String(error)))
    } finally {
      setBusy(false)
    }
  }
  return (
    <section class={`card ${styles['form']}`} aria-label="New sweep">
      <h2>Workload</h2>
      <fieldset>
        <legend class="visually-hidden">Workload</legend>
        <For each={SOURCES}>
          {(each) => (
            <label>
              <input
                type="radio"
                name="source"
                checked={source() === each}
                onChange={() => set({ source: each })}
              />{' '}
              {SOURCE_NAMES[each]}
            </label>
          )}
        </For>
      </fieldset>
      <Switch>
        <Match when={source() === 'scenario'}>
          <ShippedSource
            name={search.scenario ?? ''}
            onName={(scenario) => set({ scenario })}
            onChosen={setChoice}
            onEdit={edit}
          />
        </Match>
        <Match when={source() === 'text'}>
          <ScenarioEditor text={text()} onText={setText} onChosen={setChoice} />
        </Match>
        <Match when={source() === 'trace'}>
          <TraceSource
            name={search.trace ?? ''}
            onName={(trace) => set({ trace })}
            onChosen={setChoice}
            onEdit={edit}
          />
        </Match>
        <Match when={source() === 'live'}>
          <LiveSource onChosen={setChoice} />
        </Match>
      </Switch>
      <h2>Parameters</h2>
      <GridFields
        texts={request.texts()}
        problems={{
          percents: request.problems().percents ?? refusalOf('overcommit_percents'),
          seeds: request.problems().seeds ?? refusalOf('seeds'),
          keep: refusalOf('objectives'),
        }}
        onInput={set}
      />
      <OtherField
        fields={fields()}
        field={request.field()}
        values={request.valuesText()}
        problem={request.problems().values ?? refusalOf('fields')}
        onField={(chosen) => set({ field: chosen === '' ? null : chosen, values: null })}
        onValues={(text) => set({ values: text })}
      />
      <Problem text={problem()?.message} />
      <div class="row">
        <ActionButton class="primary" whyNot={whyNot()} onClick={() => void run()}>
          Run sweep
        </ActionButton>
        <span role="status" class="quiet text">
          {whyNot() ?? `${request.runs()}. They do not affect the live cluster.`}
        </span>
      </div>
    </section>
  )
}
