/** One task: its details, the explanation of its state, its history, and its actions. */
import { useParams, useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { Match, Show, Switch, type JSX } from 'solid-js'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { Crumbs } from '../../components/crumbs.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { usePageTitle } from '../../state/page-title.ts'
import { Chip } from '../../design/chip.tsx'
import { TabLinks } from '../../design/tab-links.tsx'
import { residencyWords, stateWords, toneOf } from '../../format/tasks.ts'
import { Answer, Explanation } from './explanation.tsx'
import { Connect } from './connect.tsx'
import styles from './tasks.module.css'
import { Files } from './files.tsx'
import { Logs } from './logs/logs.tsx'
import { SwapHistory } from './swap-history.tsx'
import { TaskActions } from './task-actions.tsx'
import { TaskFacts } from './task-facts.tsx'
import { TaskJson } from './task-json.tsx'
import { Timeline } from './timeline.tsx'
import { OnHost } from './on-host.tsx'

export default function Task(): JSX.Element {
  const params = useParams<{ id: string }>()
  // Another task gets a new page, so that nothing of one task is shown or done under the name of another.
  return (
    <Show when={params.id} keyed>
      {(id) => <TaskPage id={id} />}
    </Show>
  )
}

function TaskPage(props: { readonly id: string }): JSX.Element {
  const { api } = useCluster()
  const task = useQuery(() => ({
    queryKey: ['tasks', 'one', props.id],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<TaskBody>(`/tasks/${pathSegment(props.id)}`, {}, signal),
    refetchInterval: 5_000,
  }))
  usePageTitle(() => task.data?.name)
  return (
    <div class="stack">
      <Crumbs path="/tasks" name="Tasks" />
      <div class="row">
        <h1 class="text">{task.data?.name ?? 'Task'}</h1>
        <Show when={task.data}>{(body) => <Chip tone={toneOf(body())}>{stateOf(body())}</Chip>}</Show>
      </div>
      <QueryState query={task}>
        {(body) => (
          <>
            <header class={styles['task']}>
              <Answer taskId={props.id} />
              <TaskActions task={body()} />
            </header>
            <Views task={body()} />
          </>
        )}
      </QueryState>
    </div>
  )
}

/** Residency is part of the state of a placed task. */
function stateOf(task: TaskBody): string {
  const isAway = task.residency !== 'none' && task.residency !== 'resident'
  return isAway ? `${stateWords(task)}, ${residencyWords(task)}` : stateWords(task)
}

const VIEWS = ['overview', 'timeline', 'decisions', 'logs', 'files', 'connect', 'json'] as const
type View = (typeof VIEWS)[number]
const VIEW_NAMES: Readonly<Record<View, string>> = {
  overview: 'Overview',
  timeline: 'Timeline',
  decisions: 'Decisions',
  logs: 'Logs',
  files: 'Files',
  connect: 'Connect',
  json: 'JSON',
}

function Views(props: { readonly task: TaskBody }): JSX.Element {
  const path = usePath()
  const [search] = useSearchParams<{ view?: string; decision?: string }>()
  const view = (): View =>
    VIEWS.find((each) => each === search.view) ?? (search.decision === undefined ? 'overview' : 'decisions')
  const href = (to: View): string =>
    path(`/tasks/${pathSegment(props.task.id)}${to === 'overview' ? '' : `?view=${to}`}`)
  return (
    <>
      <TabLinks
        name="Task sections"
        tabs={VIEWS.map((each) => ({ name: VIEW_NAMES[each], href: href(each), isCurrent: view() === each }))}
      />
      <Switch>
        <Match when={view() === 'overview'}>
          <Explanation taskId={props.task.id} />
          <TaskFacts task={props.task} />
        </Match>
        <Match when={view() === 'timeline'}>
          <Timeline taskId={props.task.id} />
        </Match>
        <Match when={view() === 'decisions'}>
          <SwapHistory taskId={props.task.id} />
        </Match>
        <Match when={view() === 'logs'}>
          <OnHost task={props.task} what="output">
            <Logs task={props.task} />
          </OnHost>
        </Match>
        <Match when={view() === 'files'}>
          <OnHost task={props.task} what="files">
            <Files task={props.task} />
          </OnHost>
        </Match>
        <Match when={view() === 'connect'}>
          <OnHost task={props.task} what="processes">
            <Connect task={props.task} />
          </OnHost>
        </Match>
        <Match when={view() === 'json'}>
          <TaskJson task={props.task} />
        </Match>
      </Switch>
    </>
  )
}
