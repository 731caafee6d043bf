/** A node that is being emptied: how far it is, whom it waits for, and what comes next. */
import { A } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import type { NodeBody } from '../../../controller/api/schema/node.ts'
import type { TaskBody } from '../../../controller/api/schema/task.ts'
import { part } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { clockTime, whole } from '../../format/figures.ts'
import { usePlacedTasks } from './gpu-table.tsx'

const NAMED = 12

export function DrainState(props: { readonly node: NodeBody }): JSX.Element {
  const tasks = usePlacedTasks(() => props.node.node_id)
  const ofKind = (moves: boolean): readonly TaskBody[] =>
    (tasks.data?.items ?? []).filter(({ on_node_loss: onLoss }) => (onLoss === 'requeue') === moves)
  return (
    <Show when={props.node.drain}>
      {(drain) => (
        <section class="card" aria-label="Drain">
          <h2>
            {drain().tasks_left === 0
              ? 'It is empty'
              : `Being emptied: ${whole(drain().tasks_left)} tasks left`}
          </h2>
          <p class="quiet text">
            Since {clockTime(drain().since)}, wanted by {drain().by}. It takes no new task until it is
            uncordoned.
          </p>
          <Show when={drain().tasks_left === 0}>
            <p>Nothing runs on it any more: it can be switched off. When it is back, uncordon it.</p>
          </Show>
          <Show when={drain().tasks_left > 0}>
            <Show
              when={drain().moves_at}
              fallback={
                <p>
                  Its tasks stay until they end; none is moved. To have those moved that may be requeued:
                  uncordon it, and drain it again.
                </p>
              }
            >
              {(at) => (
                <>
                  <Left
                    tasks={ofKind(true)}
                    words={`are moved from ${clockTime(at())} on: they are stopped and begin again on another node`}
                  />
                  <Left
                    tasks={ofKind(false)}
                    words="stay until they end, or somebody cancels them: they may not be requeued"
                  />
                </>
              )}
            </Show>
          </Show>
        </section>
      )}
    </Show>
  )
}

function Left(props: { readonly tasks: readonly TaskBody[]; readonly words: string }): JSX.Element {
  const path = usePath()
  return (
    <Show when={props.tasks.length > 0}>
      <p class="text">
        {whole(props.tasks.length)} {props.words}:{' '}
        <For each={props.tasks.slice(0, NAMED)}>
          {(task, index) => (
            <>
              {index() > 0 ? ', ' : ''}
              <A href={path(`/tasks/${part(task.id)}`)}>{task.name}</A>
            </>
          )}
        </For>
        <Show when={props.tasks.length > NAMED}> and {whole(props.tasks.length - NAMED)} more</Show>.
      </p>
    </Show>
  )
}
