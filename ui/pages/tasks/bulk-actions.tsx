/** Actions for the selected tasks: one question with counts, then a result for each task. */
import { useQueryClient } from '@tanstack/solid-query'
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { TaskLink } from '../../components/links.tsx'
import { ActionButton } from '../../design/action-button.tsx'
import { ConfirmDialog } from '../../design/confirm-dialog.tsx'
import { MAX_SELECTED, type Selection } from '../../design/selection.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { plural, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { inOrder, partsOf, runEach, type Result } from './bulk.ts'
import { whyNotCancel, whyNotHold, whyNotOwn, whyNotRelease } from './task-rights.ts'
import styles from './tasks.module.css'

interface Action {
  readonly name: string
  readonly done: string
  readonly isDanger: boolean
  readonly method: 'DELETE' | 'POST'
  readonly path: string
  readonly effect: string
  readonly whyNot: (task: TaskBody) => string | null
}

const COLUMNS: readonly Column<Result>[] = [
  { name: 'Task', cell: (row) => <TaskLink id={row().id} name={row().name} /> },
  {
    name: 'Result',
    class: 'text',
    cell: (row) => <span class={row().isDone ? 'good' : 'bad'}>{row().words}</span>,
  },
]

export function BulkActions(props: { readonly selection: Selection<TaskBody> }): JSX.Element {
  const { api, session } = useCluster()
  const queries = useQueryClient()
  const [asked, setAsked] = createSignal<Action | null>(null)
  const [results, setResults] = createSignal<readonly Result[]>([])
  const tasks = (): readonly TaskBody[] => props.selection.rows()
  const operator = (): string | null => session.whyNot('operator')
  const actions: readonly Action[] = [
    {
      name: 'Cancel',
      done: 'Cancelled',
      isDanger: true,
      method: 'DELETE',
      path: '',
      effect: 'Pending tasks leave the queue. GPU servers stop the running tasks, and unsaved work is lost.',
      whyNot: (task) => whyNotOwn(session, task) ?? whyNotCancel(task),
    },
    {
      name: 'Hold',
      done: 'On hold',
      isDanger: false,
      method: 'POST',
      path: '/hold',
      effect: 'The tasks are not placed until they are released. They keep their queue positions.',
      whyNot: (task) => operator() ?? whyNotHold(task),
    },
    {
      name: 'Release',
      done: 'Released',
      isDanger: false,
      method: 'POST',
      path: '/release',
      effect: 'The tasks can be placed again. They keep their previous queue positions.',
      whyNot: (task) => operator() ?? whyNotRelease(task),
    },
  ]
  const parts = (action: Action) => partsOf(tasks(), action.whyNot)
  const whyNotAny = (action: Action): string | null => {
    const { ready, skipped } = parts(action)
    return ready.length > 0 ? null : (skipped[0]?.words.replace(/^Skipped: /, '') ?? 'Nothing is selected.')
  }
  const run = async (action: Action): Promise<void> => {
    const { ready, skipped } = parts(action)
    const answers = await runEach(
      ready,
      ({ id }) => api.send(action.method, `/tasks/${pathSegment(id)}${action.path}`),
      action.done,
    )
    setResults(inOrder([...answers, ...skipped]))
    props.selection.clear()
    await queries.invalidateQueries({ queryKey: ['tasks'] })
  }
  return (
    <>
      <Show when={tasks().length > 0}>
        <div class={styles['bulk']} role="group" aria-label="Selected tasks">
          <strong role="status">
            {plural(tasks().length, 'task', 'tasks')} selected
            {props.selection.isFull() ? `; at most ${MAX_SELECTED} can be selected` : ''}
          </strong>
          <For each={actions}>
            {(action) => (
              <ActionButton
                class={action.isDanger ? 'danger' : ''}
                whyNot={whyNotAny(action)}
                onClick={() => setAsked(action)}
              >
                {action.name}…
              </ActionButton>
            )}
          </For>
          <button onClick={() => props.selection.clear()}>Clear selection</button>
        </div>
      </Show>
      <Show when={asked()}>
        {(action) => (
          <ConfirmDialog
            isOpen
            onClose={() => setAsked(null)}
            title={`${action().name} ${plural(parts(action()).ready.length, 'task', 'tasks')}?`}
            confirm={`${action().name} ${plural(parts(action()).ready.length, 'task', 'tasks')}`}
            isDanger={action().isDanger}
            run={() => run(action())}
          >
            <Counts parts={parts(action())} />
            <p>{action().effect}</p>
          </ConfirmDialog>
        )}
      </Show>
      <Show when={results().length > 0}>
        <section class="card" aria-label="Results">
          <div class="row">
            <h2>
              {whole(results().filter(({ isDone }) => isDone).length)} of {whole(results().length)} done
            </h2>
            <button onClick={() => setResults([])}>Dismiss results</button>
          </div>
          <Table name="Results" columns={COLUMNS} rows={results()} idOf={({ id }) => id} />
        </section>
      </Show>
    </>
  )
}

function Counts(props: { readonly parts: ReturnType<typeof partsOf> }): JSX.Element {
  const running = (): number => props.parts.ready.filter(({ state }) => state !== 'pending').length
  return (
    <ul>
      <li>{plural(props.parts.ready.length - running(), 'pending task', 'pending tasks')}</li>
      <Show when={running() > 0}>
        <li>{plural(running(), 'running task', 'running tasks')}</li>
      </Show>
      <Show when={props.parts.skipped.length > 0}>
        <li class="warn">{plural(props.parts.skipped.length, 'task is skipped', 'tasks are skipped')}</li>
      </Show>
    </ul>
  )
}
