/**
 * The actions for a task. Actions that its state or the user's role does not allow are disabled, with the
 * reason.
 */
import { useQueryClient } from '@tanstack/solid-query'
import { createSignal, For, type JSX } from 'solid-js'
import type { TaskBody, TaskPatchBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { ConfirmedAction } from '../../design/confirm-dialog.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { SubmitTask } from './submit-task.tsx'
import {
  whyNotCancel,
  whyNotHold,
  whyNotOwn,
  whyNotPatch,
  whyNotRelease,
  whyNotSwapIn,
  whyNotSwapOut,
} from './task-rights.ts'

export function TaskActions(props: { readonly task: TaskBody }): JSX.Element {
  const { api, session } = useCluster()
  const queries = useQueryClient()
  const at = (): string => `/tasks/${pathSegment(props.task.id)}`
  const again = async (sent: Promise<unknown>): Promise<void> => {
    await sent
    await queries.invalidateQueries({ queryKey: ['tasks'] })
  }
  const post = (action: string): Promise<void> => again(api.send('POST', `${at()}/${action}`))
  const patch = (body: TaskPatchBody): Promise<void> => again(api.send('PATCH', at(), { body }))
  const own = (): string | null => whyNotOwn(session, props.task)
  const operator = (): string | null => session.whyNot('operator')
  return (
    <section class="row" aria-label="Actions">
      <SubmitTask of={props.task} />
      <Noswap
        task={props.task}
        whyNot={own() ?? whyNotPatch(props.task)}
        run={(noswap) => patch({ noswap })}
      />
      <Priority
        task={props.task}
        whyNot={own() ?? whyNotPatch(props.task)}
        run={(priority) => patch({ priority })}
      />
      <ConfirmedAction
        label="Hold"
        title={`Hold ${props.task.name}?`}
        confirm="Hold"
        whyNot={operator() ?? whyNotHold(props.task)}
        run={() => post('hold')}
      >
        <p>The task is not placed until it is released. It keeps its queue position.</p>
      </ConfirmedAction>
      <ConfirmedAction
        label="Release"
        title={`Release ${props.task.name}?`}
        confirm="Release"
        whyNot={operator() ?? whyNotRelease(props.task)}
        run={() => post('release')}
      >
        <p>The task can be placed again. It keeps its previous queue position.</p>
      </ConfirmedAction>
      <ConfirmedAction
        label="Swap out"
        title={`Swap ${props.task.name} out?`}
        confirm="Swap out"
        whyNot={operator() ?? whyNotSwapOut(props.task)}
        run={() => post('swap-out')}
      >
        <p>
          The memory of the task moves to the host. The task stays swapped out until it wants the GPU or is
          swapped in manually. The GPU server can refuse the swap-out.
        </p>
      </ConfirmedAction>
      <ConfirmedAction
        label="Swap in"
        title={`Swap ${props.task.name} in?`}
        confirm="Swap in"
        whyNot={operator() ?? whyNotSwapIn(props.task)}
        run={() => post('swap-in')}
      >
        <p>
          The task waits for VRAM in the queue of its node, like a task that wants the GPU. Other tasks may be
          swapped out for it.
        </p>
      </ConfirmedAction>
      <ConfirmedAction
        label="Cancel task"
        title={`Cancel ${props.task.name}?`}
        confirm="Cancel task"
        isDanger
        whyNot={own() ?? whyNotCancel(props.task)}
        run={() => again(api.send('DELETE', at()))}
      >
        <p>
          {props.task.state === 'pending'
            ? 'The task leaves the queue immediately. This cannot be undone.'
            : 'The GPU server stops the task. Unsaved work is lost. This cannot be undone.'}
        </p>
      </ConfirmedAction>
    </section>
  )
}

interface NoswapProps {
  readonly task: TaskBody
  readonly whyNot: string | null
  readonly run: (noswap: TaskBody['noswap']) => Promise<void>
}

function Noswap(props: NoswapProps): JSX.Element {
  // The question is fixed while the dialog is open: a change by another client must not invert what the
  // button confirms.
  const [asked, setAsked] = createSignal<TaskBody['noswap'] | null>(null)
  const wanted = (): TaskBody['noswap'] => asked() ?? (props.task.noswap === 1 ? 0 : 1)
  return (
    <ConfirmedAction
      label={`Set noswap ${wanted()}`}
      title={`Set noswap to ${wanted()} for ${props.task.name}?`}
      confirm={`Set noswap ${wanted()}`}
      whyNot={props.whyNot}
      onOpenChange={(isOpen) => setAsked(isOpen ? wanted() : null)}
      run={() => props.run(wanted())}
    >
      <p>
        {wanted() === 0
          ? 'The task can then be swapped out while it is idle, and can use overcommit headroom.'
          : 'The task is then never swapped out: it keeps its physical VRAM even while it is idle.'}
      </p>
    </ConfirmedAction>
  )
}

interface PriorityProps {
  readonly task: TaskBody
  readonly whyNot: string | null
  readonly run: (priority: TaskBody['priority']) => Promise<void>
}

function Priority(props: PriorityProps): JSX.Element {
  const [chosen, setChosen] = createSignal<TaskBody['priority'] | null>(null)
  const priority = (): TaskBody['priority'] => chosen() ?? props.task.priority
  return (
    <ConfirmedAction
      label="Priority…"
      title={`Change the priority of ${props.task.name}?`}
      confirm={`Set P${priority()}`}
      whyNot={props.whyNot}
      run={() => props.run(priority()).then(() => setChosen(null))}
    >
      <p>
        <label>
          Priority{' '}
          <select
            value={String(priority())}
            onChange={(event) => setChosen(Number(event.currentTarget.value) as TaskBody['priority'])}
          >
            <For each={[0, 1, 2, 3, 4]}>{(each) => <option value={String(each)}>P{each}</option>}</For>
          </select>
        </label>
      </p>
      <p>
        The task has P{props.task.priority} now; P0 is the highest. Pending tasks are served by priority; P0
        tasks are swapped out only for other P0 tasks.
      </p>
    </ConfirmedAction>
  )
}
