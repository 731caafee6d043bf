/** What to try: a workload, a grid of percentages, seeds, and what a percentage has to keep. */
import { useNavigate, useSearchParams } from '@solidjs/router'
import { createMemo, createSignal, For, Match, Show, Switch, type JSX } from 'solid-js'
import type { SimulationBody } from '../../../controller/api/schema/simulation.ts'
import { Refused } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { notYet, SOURCE_NAMES, SOURCES, type Chosen, type SourceKind } from '../../scenario/choice.ts'
import { GridFields } from './grid-fields.tsx'
import { PERCENTS, readNumbers, readObjectives, SEEDS, tooMany } from './grid.ts'
import { LiveSource } from './live-source.tsx'
import { ScenarioEditor } from '../../scenario/scenario-editor.tsx'
import { ShippedSource } from './shipped-source.tsx'
import { TraceSource } from './trace-source.tsx'
import styles from './planner.module.css'

const PERCENTS_AT_FIRST = '0..100:25'
const SEEDS_AT_FIRST = '1..3'
const OBJECTIVES_AT_FIRST = 'starvation.total<=20'

export function SweepForm(): JSX.Element {
  const { api, session } = useCluster()
  const path = usePath()
  const navigate = useNavigate()
  const [search, setSearch] = useSearchParams<{
    source?: string
    scenario?: string
    trace?: string
    percents?: string
    seeds?: string
    keep?: string
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
  const percentsText = (): string => search.percents ?? PERCENTS_AT_FIRST
  const seedsText = (): string => search.seeds ?? SEEDS_AT_FIRST
  const keepText = (): string => search.keep ?? OBJECTIVES_AT_FIRST
  const percents = createMemo(() => readNumbers(percentsText(), PERCENTS))
  const seeds = createMemo(() => readNumbers(seedsText(), SEEDS))
  const runs = (): string => {
    const [a, b] = [percents(), seeds()]
    return a.ok && b.ok ? `${a.values.length} percentages × ${b.values.length} seeds = ${a.values.length * b.values.length} runs` : ''
  }
  const gridProblem = (): string | null => {
    const [a, b] = [percents(), seeds()]
    if (!a.ok) return a.why
    return b.ok ? tooMany(a.values.length, b.values.length) : b.why
  }
  const whyNot = (): string | null =>
    session.whyNot('submitter') ?? gridProblem() ?? choice().whyNot ?? (isBusy() ? 'It is being asked for.' : null)
  const refusalOf = (field: string): string | null => {
    const error = problem()
    return error instanceof Refused ? (error.errors.find(({ pointer }) => pointer.startsWith(`/${field}`))?.detail ?? null) : null
  }
  const edit = (edited: string): void => {
    setText(edited)
    set({ source: 'text' })
  }
  const run = async (): Promise<void> => {
    const [a, b] = [percents(), seeds()]
    if (!a.ok || !b.ok) return
    setBusy(true)
    setProblem(null)
    try {
      const body = { ...choice().part, overcommit_percents: a.values, seeds: b.values, objectives: readObjectives(keepText()) }
      const answer = await api.send<SimulationBody>('POST', '/simulations/sweep', { body })
      navigate(path(`/planner/${answer.body.id}`))
    } catch (error) {
      setProblem(error instanceof Error ? error : new Error(String(error)))
    } finally {
      setBusy(false)
    }
  }
  return (
    <section class={`card ${styles['form']}`} aria-label="What to try">
      <h2>Which workload</h2>
      <fieldset>
        <legend class="visually-hidden">Which workload</legend>
        <For each={SOURCES}>
          {(each) => (
            <label>
              <input type="radio" name="source" checked={source() === each} onChange={() => set({ source: each })} /> {SOURCE_NAMES[each]}
            </label>
          )}
        </For>
      </fieldset>
      <Switch>
        <Match when={source() === 'scenario'}>
          <ShippedSource name={search.scenario ?? ''} onName={(scenario) => set({ scenario })} onChosen={setChoice} onEdit={edit} />
        </Match>
        <Match when={source() === 'text'}>
          <ScenarioEditor text={text()} onText={setText} onChosen={setChoice} />
        </Match>
        <Match when={source() === 'trace'}>
          <TraceSource name={search.trace ?? ''} onName={(trace) => set({ trace })} onChosen={setChoice} onEdit={edit} />
        </Match>
        <Match when={source() === 'live'}>
          <LiveSource onChosen={setChoice} />
        </Match>
      </Switch>
      <h2>What to try on it</h2>
      <GridFields
        texts={{ percents: percentsText(), seeds: seedsText(), keep: keepText() }}
        problems={{
          percents: problemOf(percents()) ?? refusalOf('overcommit_percents'),
          seeds: problemOf(seeds()) ?? refusalOf('seeds'),
          keep: refusalOf('objectives'),
        }}
        onInput={set}
      />
      <Show when={problem()}>
        {(error) => (
          <p class="bad text" role="alert">
            {error().message}
          </p>
        )}
      </Show>
      <div class="row">
        <ActionButton class="primary" whyNot={whyNot()} onClick={() => void run()}>
          Run
        </ActionButton>
        <span role="status" class="quiet text">
          {whyNot() ?? `${runs()}. They run beside the live cluster and change nothing of it.`}
        </span>
      </div>
    </section>
  )
}

function problemOf(read: ReturnType<typeof readNumbers>): string | null {
  return read.ok ? null : read.why
}
