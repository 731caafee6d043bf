/** Chooses a scenario by its name: those of the library and those of users. */
import { useQuery } from '@tanstack/solid-query'
import { createEffect, createUniqueId, For, Show, type JSX } from 'solid-js'
import type {
  ScenarioBody,
  ScenarioEntryPage,
  ValidationBody,
} from '../../../controller/api/simulations/scenario-schema.ts'
import { pathSegment } from '../../api/client.ts'
import { Prose } from '../../components/prose.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { chosen, notYet, type Chosen } from '../../scenario/choice.ts'
import styles from './planner.module.css'

export interface ShippedSourceProps {
  readonly name: string
  readonly onName: (name: string) => void
  readonly onChosen: (choice: Chosen) => void
  readonly onEdit: (text: string) => void
}

export function ShippedSource(props: ShippedSourceProps): JSX.Element {
  const { api } = useCluster()
  const id = createUniqueId()
  const scenarios = useQuery(() => ({
    queryKey: ['scenarios'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<ScenarioEntryPage>('/scenarios', {}, signal),
  }))
  const entry = () => scenarios.data?.items.find(({ name }) => name === props.name)
  const facts = useQuery(() => ({
    queryKey: ['scenarios', props.name, 'facts'],
    enabled: entry() !== undefined && entry()?.too_large_because === null,
    queryFn: async ({ signal }: { signal: AbortSignal }) =>
      (
        await api.send<ValidationBody>('POST', '/scenarios/validate', {
          body: { scenario: props.name },
          signal,
        })
      ).body.facts,
    staleTime: Infinity,
  }))
  const whyNot = (): string | null => {
    if (props.name === '') return 'Choose a scenario.'
    if (scenarios.data !== undefined && entry() === undefined) return `Scenario ${props.name} not found.`
    const because = entry()?.too_large_because ?? null
    return because === null
      ? null
      : `The scenario is too large for a complete run: ${because} Edit its text, or open it as a session.`
  }
  createEffect(() => {
    const because = whyNot()
    props.onChosen(
      because === null ? chosen({ scenario: props.name }, facts.data?.swept_fields) : notYet(because),
    )
  })
  const edit = async (): Promise<void> =>
    props.onEdit((await api.get<ScenarioBody>(`/scenarios/${pathSegment(props.name)}`)).text)
  return (
    <QueryState
      query={scenarios}
      isEmpty={({ items }) => items.length === 0}
      whenEmpty={<p>No scenarios yet: enter custom YAML.</p>}
    >
      {(page) => (
        <div class={styles['field']}>
          <label for={id}>Scenario</label>
          <div class="row">
            <select id={id} onChange={(event) => props.onName(event.currentTarget.value)}>
              <option value="" selected={props.name === ''}>
                Choose one
              </option>
              <For each={purposesOf(page())}>
                {([purpose, items]) => (
                  <optgroup label={purpose}>
                    <For each={items}>
                      {({ name }) => (
                        <option value={name} selected={name === props.name}>
                          {name}
                        </option>
                      )}
                    </For>
                  </optgroup>
                )}
              </For>
            </select>
            <button type="button" disabled={entry() === undefined} onClick={() => void edit()}>
              Edit text
            </button>
          </div>
          <Show when={entry()?.description}>
            {(words) => (
              <p class="quiet text">
                <Prose text={words()} />
              </p>
            )}
          </Show>
        </div>
      )}
    </QueryState>
  )
}

function purposesOf({ items }: ScenarioEntryPage) {
  const groups = new Map<string, ScenarioEntryPage['items'][number][]>()
  for (const item of items) {
    const purpose = item.is_own ? 'your own' : (item.purpose ?? 'rules')
    groups.set(purpose, [...(groups.get(purpose) ?? []), item])
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1))
}
