/** Submits a task from a drawer, which says while one types where and when it would start. */
import { useNavigate, useSearchParams } from '@solidjs/router'
import { useQueryClient } from '@tanstack/solid-query'
import { createEffect, createSignal, For, Show, type JSX } from 'solid-js'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath, useWorld } from '../../api/world.ts'
import { Problem } from '../../design/problem.tsx'
import { ActionButton } from '../../design/action-button.tsx'
import { CopyButton } from '../../design/copy-button.tsx'
import { Drawer } from '../../design/drawer.tsx'
import { Icon } from '../../design/icon.tsx'
import { toast } from '../../design/toast.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { whyNot } from '../../state/rights.ts'
import { plural } from '../../format/figures.ts'
import {
  commandLineOf,
  draftOf,
  NEW_DRAFT,
  notOnCommandLine,
  requestOf,
  wordsOf,
  type Draft,
} from './submission.ts'
import { StartPreview } from './start-preview.tsx'
import styles from './tasks.module.css'
import { errorText } from '../../api/error-text.ts'

/** Opens the form with the fields of no task, or of the task that is cloned. */
export function SubmitTask(props: { readonly of?: TaskBody }): JSX.Element {
  const { session } = useCluster()
  const world = useWorld()
  const [isOpen, setOpen] = createSignal(false)
  const [search, setSearch] = useSearchParams<{ submit?: string }>()
  // A link of the palette. A reload must not open the form again.
  createEffect(() => {
    if (props.of !== undefined || search.submit === undefined) return
    setOpen(whyNot(session.body(), 'submitter', world) === null)
    setSearch({ submit: null }, { replace: true })
  })
  const title = (): string => (props.of === undefined ? 'Submit task' : `Clone ${props.of.name}`)
  const whyNotClone = (): string | null =>
    props.of?.command === null ? 'The task is a lease and has no command.' : null
  return (
    <>
      <ActionButton
        class={props.of === undefined ? 'primary' : ''}
        whyNot={whyNot(session.body(), 'submitter', world) ?? whyNotClone()}
        onClick={() => setOpen(true)}
      >
        <Icon of={props.of === undefined ? 'plus' : 'copy-plus'} />
        {props.of === undefined ? 'Submit task' : 'Clone'}
      </ActionButton>
      <Drawer isOpen={isOpen()} onClose={() => setOpen(false)} title={title()}>
        <Form of={props.of} onDone={() => setOpen(false)} />
      </Drawer>
    </>
  )
}

interface FormProps {
  readonly of: TaskBody | undefined
  readonly onDone: () => void
}

function Form(props: FormProps): JSX.Element {
  const { api } = useCluster()
  const navigate = useNavigate()
  const path = usePath()
  const queries = useQueryClient()
  // The form keeps what it began with: the task changes while it runs.
  // eslint-disable-next-line solid/reactivity
  const source = props.of
  const [draft, setDraft] = createSignal<Draft>(source === undefined ? NEW_DRAFT : draftOf(source))
  const [problem, setProblem] = createSignal<string | null>(null)
  const [isBusy, setBusy] = createSignal(false)
  const set = (change: Partial<Draft>): void => void setDraft({ ...draft(), ...change })
  const request = () => requestOf(draft())
  const missing = (): string | null => {
    const asked = request()
    if ('missing' in asked) return asked.missing
    return (wordsOf(draft().command) ?? []).length === 0 ? 'Enter the command.' : null
  }
  const submit = async (): Promise<void> => {
    const asked = request()
    if ('missing' in asked || missing() !== null) return
    setBusy(true)
    setProblem(null)
    try {
      const { body } = await api.send<TaskBody>('POST', '/tasks', { body: asked.body })
      void queries.invalidateQueries({ queryKey: ['tasks'] })
      toast({ text: `Task ${body.name} submitted.` })
      props.onDone()
      navigate(path(`/tasks/${pathSegment(body.id)}`))
    } catch (error) {
      setProblem(errorText(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <form
      class={styles['form']}
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      <Fields draft={draft()} set={set} />
      <Show when={source}>{(task) => <Copied task={task()} draft={draft()} />}</Show>
      <StartPreview request={request()} />
      <details>
        <summary>Command line</summary>
        <pre tabindex="0">{commandLineOf(draft())}</pre>
        <Show when={notOnCommandLine(draft()).length > 0}>
          <p class="quiet">Not included: {notOnCommandLine(draft()).join(', ')}.</p>
        </Show>
        <p>
          <CopyButton what="command line" text={() => commandLineOf(draft())} />
        </p>
      </details>
      <Problem text={problem()} />
      <div class={styles['buttons']}>
        <button type="button" onClick={() => props.onDone()}>
          Cancel
        </button>
        <ActionButton
          class="primary"
          type="submit"
          whyNot={isBusy() ? 'In progress.' : missing()}
          onClick={() => {}}
        >
          Submit
        </ActionButton>
      </div>
    </form>
  )
}

/** The properties that the new task copies besides the fields above, and those that it does not copy. */
function Copied(props: { readonly task: TaskBody; readonly draft: Draft }): JSX.Element {
  const fields = (): readonly string[] => Object.keys(props.draft.more)
  return (
    <>
      <Show when={fields().length > 0}>
        <p class="quiet text">Also copied: {fields().join(', ')}.</p>
      </Show>
      <Show when={props.task.env_names.length > 0}>
        <p class="warn text">
          Not copied: the{' '}
          {plural(props.task.env_names.length, 'environment variable', 'environment variables')}{' '}
          {props.task.env_names.join(', ')}. Only the owner of the task can read the values. To set them,
          submit the task from the command line.
        </p>
      </Show>
    </>
  )
}

interface FieldsProps {
  readonly draft: Draft
  readonly set: (change: Partial<Draft>) => void
}

function Fields(props: FieldsProps): JSX.Element {
  return (
    <>
      <label>
        Name
        <input
          maxLength="200"
          value={props.draft.name}
          onInput={(event) => props.set({ name: event.currentTarget.value })}
        />
      </label>
      <label>
        Command
        <textarea
          rows="2"
          spellcheck={false}
          placeholder="python train.py --epochs 10"
          value={props.draft.command}
          onInput={(event) => props.set({ command: event.currentTarget.value })}
        />
      </label>
      <div class={styles['two']}>
        <label>
          VRAM per GPU (GiB)
          <input
            type="number"
            min="0.1"
            step="any"
            value={props.draft.vramGib}
            onInput={(event) => props.set({ vramGib: event.currentTarget.value })}
          />
        </label>
        <label>
          GPUs
          <input
            type="number"
            min="1"
            value={props.draft.gpus}
            onInput={(event) => props.set({ gpus: event.currentTarget.value })}
          />
        </label>
        <label>
          Priority
          <select
            value={props.draft.priority}
            onChange={(event) => props.set({ priority: event.currentTarget.value })}
          >
            <For each={['0', '1', '2', '3', '4']}>
              {(each) => (
                <option value={each}>
                  P{each}
                  <Show when={each === '2'}> (default)</Show>
                </option>
              )}
            </For>
          </select>
        </label>
        <label>
          Groups
          <input
            placeholder="common pool"
            value={props.draft.groups}
            onInput={(event) => props.set({ groups: event.currentTarget.value })}
          />
        </label>
      </div>
      <label class={styles['check']}>
        <input
          type="checkbox"
          checked={props.draft.noswap}
          onChange={(event) => props.set({ noswap: event.currentTarget.checked })}
        />
        noswap: never swapped out, stays in physical VRAM
      </label>
    </>
  )
}
