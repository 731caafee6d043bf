/** Search results: the first nodes and tasks, with links to the full lists. */
import { A, useNavigate, useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createEffect, For, Show, type JSX } from 'solid-js'
import { pathSegment } from '../../api/client.ts'
import { queryText } from '../../api/query-text.ts'
import { usePath } from '../../api/world.ts'
import { QueryState } from '../../components/query-state.tsx'
import { mib, plural, whole } from '../../format/figures.ts'
import { statusWords } from '../../format/nodes.ts'
import { useCluster } from '../../state/cluster.tsx'
import { exactMatch, find, SHOWN, type Found } from '../../api/find.ts'
import { usePageTitle } from '../../state/page-title.ts'

export default function Search(): JSX.Element {
  usePageTitle(() => 'Search')
  const { api } = useCluster()
  const [search] = useSearchParams<{ q?: string }>()
  const text = (): string => (search.q ?? '').trim().slice(0, 200)
  const found = useQuery(() => ({
    queryKey: ['search', text()],
    queryFn: ({ signal }: { signal: AbortSignal }) => find(api, text(), signal),
    enabled: text() !== '',
    staleTime: 2_000,
  }))
  const navigate = useNavigate()
  const path = usePath()
  // The only result with exactly this name or id is opened at once.
  createEffect(() => {
    const only = found.data === undefined ? null : exactMatch(found.data, text())
    if (only !== null) navigate(path(only), { replace: true })
  })
  return (
    <div class="stack">
      <h1>Search</h1>
      <Show
        when={text() !== ''}
        fallback={
          <p class="card">
            Enter part of a task or node name, or a complete ID, in the field above. Press / to focus it.
          </p>
        }
      >
        <QueryState
          query={found}
          isEmpty={({ nodes, tasks }) => nodes.length + tasks.length === 0}
          whenEmpty={
            <p class="card">
              No task or node has <q class="text">{text()}</q> in its name or as its ID.
            </p>
          }
        >
          {(answer) => <Results found={answer()} text={text()} />}
        </QueryState>
      </Show>
    </div>
  )
}

function Results(props: { readonly found: Found; readonly text: string }): JSX.Element {
  const path = usePath()
  return (
    <>
      <Section
        title="Nodes"
        shown={props.found.nodes.length}
        of={props.found.nodeCount}
        href={path(`/nodes${queryText({ q: props.text })}`)}
      >
        <For each={props.found.nodes}>
          {(node) => (
            <li>
              <A class="text" href={path(`/nodes/${pathSegment(node.node_id)}`)}>
                {node.name}
              </A>{' '}
              <span class="quiet">
                {statusWords(node)} · {plural(node.gpus.length, 'GPU', 'GPUs')}
              </span>
            </li>
          )}
        </For>
      </Section>
      <Section
        title="Tasks"
        shown={props.found.tasks.length}
        of={props.found.taskCount}
        href={path(`/tasks${queryText({ tab: 'all', q: props.text })}`)}
      >
        <For each={props.found.tasks}>
          {(task) => (
            <li>
              <A class="text" href={path(`/tasks/${pathSegment(task.id)}`)}>
                {task.name}
              </A>{' '}
              <span class="quiet">
                {task.state} · P{task.priority} · {mib(task.vram_mib)}
              </span>
            </li>
          )}
        </For>
      </Section>
    </>
  )
}

interface SectionProps {
  readonly title: string
  readonly shown: number
  readonly of: number | null
  readonly href: string
  readonly children: JSX.Element
}

function Section(props: SectionProps): JSX.Element {
  return (
    <section class="card" aria-label={props.title}>
      <h2>
        {props.title}{' '}
        <Show when={props.of !== null}>
          <span class="quiet">{whole(props.of)}</span>
        </Show>
      </h2>
      <Show when={props.shown > 0} fallback={<p class="quiet">None.</p>}>
        <ul>{props.children}</ul>
      </Show>
      <Show when={props.of === null ? props.shown === SHOWN : props.of > props.shown}>
        <A href={props.href}>Show all in the list</A>
      </Show>
    </section>
  )
}
