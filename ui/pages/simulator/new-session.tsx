/** Opens a session from a library scenario or from custom YAML, which is checked first. */
import { useNavigate } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createSignal, createUniqueId, For, Show, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type {
  ScenarioEntryPageSchema,
  ScenarioSchema,
} from '../../../controller/api/simulations/scenario-schema.ts'
import type { SimulationBody } from '../../../controller/api/simulations/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { Problem } from '../../design/problem.tsx'
import { Prose } from '../../components/prose.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { notYet, type Chosen } from '../../scenario/choice.ts'
import { ScenarioEditor } from '../../scenario/scenario-editor.tsx'
import { errorText } from '../../api/error-text.ts'

type Entries = Static<typeof ScenarioEntryPageSchema>

export function NewSession(): JSX.Element {
  const { api, session } = useCluster()
  const navigate = useNavigate()
  const id = createUniqueId()
  const [name, setName] = createSignal('')
  const [text, setText] = createSignal<string | null>(null)
  const [written, setWritten] = createSignal<Chosen>(notYet(''), { equals: false })
  const [problem, setProblem] = createSignal<string | null>(null)
  const [isBusy, setBusy] = createSignal(false)
  const scenarios = useQuery(() => ({
    queryKey: ['scenarios'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<Entries>('/scenarios', {}, signal),
  }))
  const chosen = () => scenarios.data?.items.find((each) => each.name === name())
  const trying = async (what: () => Promise<void>): Promise<void> => {
    setProblem(null)
    setBusy(true)
    try {
      await what()
    } catch (error) {
      setProblem(errorText(error))
    } finally {
      setBusy(false)
    }
  }
  const edit = () =>
    trying(
      async () =>
        void setText(
          (await api.get<Static<typeof ScenarioSchema>>(`/scenarios/${pathSegment(name())}`)).text,
        ),
    )
  const open = () =>
    trying(async () => {
      const scenario = text() === null ? { scenario: name() } : written().part
      const { body } = await api.send<SimulationBody>('POST', '/simulations', {
        body: { ...scenario, mode: 'session' },
      })
      navigate(`/simulator/${pathSegment(body.id)}`)
    })
  const whyNot = (): string | null => {
    if (isBusy()) return 'In progress.'
    if (text() === null && name() === '') return 'Choose a scenario, or enter one.'
    return session.whyNot('submitter') ?? (text() === null ? null : written().whyNot)
  }
  return (
    <section class="card stack" aria-label="New session">
      <h2>New session</h2>
      <QueryState query={scenarios}>
        {(page) => (
          <div class="row">
            <label for={`${id}-scenario`}>Scenario</label>
            <select
              id={`${id}-scenario`}
              value={name()}
              onChange={(event) => setName(event.currentTarget.value)}
              disabled={text() !== null}
            >
              <option value="">Choose one</option>
              <For each={page().items}>{(entry) => <option value={entry.name}>{entry.name}</option>}</For>
            </select>
            <Show
              when={text() === null}
              fallback={
                <button type="button" onClick={() => setText(null)}>
                  Back to the list (discards the text)
                </button>
              }
            >
              <ActionButton
                whyNot={name() === '' ? 'Choose a scenario first.' : null}
                onClick={() => void edit()}
              >
                Edit a copy
              </ActionButton>
              <button type="button" onClick={() => setText('')}>
                Enter custom YAML
              </button>
            </Show>
          </div>
        )}
      </QueryState>
      <Show when={text() === null && chosen()?.description}>
        {(words) => (
          <p class="text quiet">
            <Prose text={words()} />
          </p>
        )}
      </Show>
      <Show when={text() !== null}>
        <ScenarioEditor text={text() ?? ''} onText={setText} onChosen={setWritten} />
      </Show>
      <Problem text={problem()} />
      <div class="row">
        <ActionButton class="primary" whyNot={whyNot()} onClick={() => void open()}>
          Open session
        </ActionButton>
        <span role="status" class="quiet text">
          {whyNot() ?? ''}
        </span>
      </div>
    </section>
  )
}
