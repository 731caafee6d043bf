/**
 * Every decision about a task: placements, swaps and growths, and those that swapped it out for others.
 * Opening one shows its details.
 */
import { useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createSignal, For, onMount, Show, type JSX } from 'solid-js'
import type { DecisionBody, DecisionPage } from '../../../controller/api/observe/decision-schema.ts'
import { DecisionDetails } from '../../components/decision-details.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { useCluster } from '../../state/cluster.tsx'

const SHOWN = 50

/** Links to the decision in the history on the same page. */
export function DecisionLink(props: { readonly number: number }): JSX.Element {
  const [, setSearch] = useSearchParams()
  return (
    <a
      href={`#decision-${props.number}`}
      onClick={(event) => {
        event.preventDefault()
        setSearch({ view: 'decisions', decision: props.number })
      }}
    >
      decision {props.number}
    </a>
  )
}

export function SwapHistory(props: { readonly taskId: string }): JSX.Element {
  const { api } = useCluster()
  const decisions = useQuery(() => ({
    queryKey: ['decisions', 'of-task', props.taskId],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<DecisionPage>('/decisions', { task: props.taskId, limit: SHOWN }, signal),
  }))
  return (
    <section class="card" aria-labelledby="decisions">
      <h2 id="decisions">Swap history and placements</h2>
      <QueryState
        query={decisions}
        isEmpty={(page) => page.items.length === 0}
        whenEmpty={<p class="quiet">There are no decisions yet, or they are no longer retained.</p>}
      >
        {(page) => (
          <>
            <For each={page().items}>
              {(decision) => <DecisionRow decision={decision} taskId={props.taskId} />}
            </For>
            <Show when={page().next_before !== null}>
              <p class="quiet">Only the latest {page().items.length} decisions are shown.</p>
            </Show>
          </>
        )}
      </QueryState>
    </section>
  )
}

function DecisionRow(props: { readonly decision: DecisionBody; readonly taskId: string }): JSX.Element {
  const [search] = useSearchParams()
  const [isOpen, setOpen] = createSignal(false)
  let summary!: HTMLElement
  const isChosen = (): boolean => search['decision'] === String(props.decision.number)
  onMount(() => {
    if (!isChosen()) return
    summary.scrollIntoView({ block: 'center' })
    summary.focus()
  })
  const isVictim = (): boolean => props.decision.victim_ids.includes(props.taskId)
  return (
    <details
      id={`decision-${props.decision.number}`}
      open={isChosen()}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary ref={summary} class="text">
        {clockTime(props.decision.at)} · {kindWords(props.decision.kind, isVictim())}:{' '}
        {props.decision.sentence}
      </summary>
      <Show when={isOpen()}>
        <DecisionDetails decision={props.decision} hasSentence />
      </Show>
    </details>
  )
}

function kindWords(kind: string, isVictim: boolean): string {
  if (isVictim) return 'as victim'
  if (kind === 'swap_out') return 'swap-outs for this task'
  return kind.replaceAll('_', ' ')
}
