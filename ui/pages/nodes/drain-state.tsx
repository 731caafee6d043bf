/** A draining node: its progress, the tasks it waits for, and the next step. */
import { A } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import type { NodeBody } from '../../../controller/api/nodes/schema.ts'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { clockTime } from '../../format/clock.ts'
import { plural, whole } from '../../format/figures.ts'
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
              ? 'Drained'
              : `Draining: ${plural(drain().tasks_left, 'task', 'tasks')} left`}
          </h2>
          <p class="quiet text">
            The drain was requested by {drain().by} at {clockTime(drain().since)}. The node receives no new
            tasks until it is uncordoned.
          </p>
          <Show when={drain().tasks_left === 0}>
            <p>No task runs on the node, so it can be switched off. Uncordon it when it is back.</p>
          </Show>
          <Show when={drain().tasks_left > 0}>
            <Show
              when={drain().moves_at}
              fallback={
                <p>
                  Its tasks keep running until they end, and none is moved. To move the tasks that may be
                  requeued, uncordon the node and drain it again.
                </p>
              }
            >
              {(at) => (
                <>
                  <RemainingTasks
                    tasks={ofKind(true)}
                    words={`will be stopped after ${clockTime(at())} and restarted on another node`}
                  />
                  <RemainingTasks
                    tasks={ofKind(false)}
                    words="cannot be requeued and will keep running until completion or cancellation"
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

function RemainingTasks(props: { readonly tasks: readonly TaskBody[]; readonly words: string }): JSX.Element {
  const path = usePath()
  return (
    <Show when={props.tasks.length > 0}>
      <p class="text">
        {plural(props.tasks.length, 'task', 'tasks')} {props.words}:{' '}
        <For each={props.tasks.slice(0, NAMED)}>
          {(task, index) => (
            <>
              {index() > 0 ? ', ' : ''}
              <A href={path(`/tasks/${pathSegment(task.id)}`)}>{task.name}</A>
            </>
          )}
        </For>
        <Show when={props.tasks.length > NAMED}> and {whole(props.tasks.length - NAMED)} more</Show>.
      </p>
    </Show>
  )
}
