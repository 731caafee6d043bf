/** Submits a task from a drawer, which says while one types where and when it would start. */
import { useNavigate } from '@solidjs/router'
import { useQueryClient } from '@tanstack/solid-query'
import { Plus } from 'lucide'
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath, useWorld } from '../../api/world.ts'
import { Problem } from '../../design/problem.tsx'
import { ActionButton } from '../../design/action-button.tsx'
import { Drawer } from '../../design/drawer.tsx'
import { Icon } from '../../design/icon.tsx'
import { toast } from '../../design/toast.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { whyNot } from '../../state/rights.ts'
import { commandLineOf, NEW_DRAFT, requestOf, wordsOf, type Draft } from './submission.ts'
import { StartPreview } from './start-preview.tsx'
import styles from './tasks.module.css'

export function SubmitTask(): JSX.Element {
  const { session } = useCluster()
  const world = useWorld()
  const [isOpen, setOpen] = createSignal(false)
  return (
    <>
      <ActionButton
        class="primary"
        whyNot={whyNot(session.body(), 'submitter', world)}
        onClick={() => setOpen(true)}
      >
        <Icon of={Plus} />
        Submit task
      </ActionButton>
      <Drawer isOpen={isOpen()} onClose={() => setOpen(false)} title="Submit task">
        <Form onDone={() => setOpen(false)} />
      </Drawer>
    </>
  )
}

function Form(props: { readonly onDone: () => void }): JSX.Element {
  const { api } = useCluster()
  const navigate = useNavigate()
  const path = usePath()
  const queries = useQueryClient()
  const [draft, setDraft] = createSignal<Draft>(NEW_DRAFT)
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
      setProblem(error instanceof Error ? error.message : String(error))
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
      <StartPreview request={request()} />
      <details>
        <summary>Command line</summary>
        <pre>{commandLineOf(draft())}</pre>
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
