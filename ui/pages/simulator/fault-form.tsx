/** Injects a fault into a session, now. */
import { useQuery } from '@tanstack/solid-query'
import { createSignal, createUniqueId, For, type JSX } from 'solid-js'
import { firstNodes } from '../../api/first-nodes.ts'
import { Refused } from '../../api/client.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { Problem } from '../../design/problem.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { useSessionControl } from './session-control.ts'
import { FAULT_TEMPLATES } from './fault-templates.ts'
import styles from './simulator.module.css'
import { errorText } from '../../api/error-text.ts'

export function FaultForm(props: { readonly onDone: () => void }): JSX.Element {
  const control = useSessionControl()
  const { api, session } = useCluster()
  const id = createUniqueId()
  const [chosen, setChosen] = createSignal(0)
  const [node, setNode] = createSignal<string | null>(null)
  const [typed, setTyped] = createSignal<string | null>(null)
  const [isHidden, setHidden] = createSignal(true)
  const [problem, setProblem] = createSignal<string | null>(null)
  const [done, setDone] = createSignal('')
  const nodes = useQuery(() => ({
    queryKey: ['nodes', 'of faults'],
    queryFn: ({ signal }: { signal: AbortSignal }) => firstNodes(api, 200, signal),
  }))
  const names = (): readonly string[] => nodes.data?.map(({ name }) => name) ?? []
  const text = (): string =>
    typed() ?? JSON.stringify(FAULT_TEMPLATES[chosen()]?.of(node() ?? names()[0] ?? ''))
  const inject = async (): Promise<void> => {
    setProblem(null)
    setDone('')
    try {
      await control.send('/faults', { fault: JSON.parse(text()) as object, is_hidden: isHidden() })
      await control.refresh()
      setDone('The fault has started.')
      props.onDone()
    } catch (error) {
      setProblem(
        error instanceof Refused
          ? [error.message, ...error.errors.map(({ detail }) => detail)].join(' ')
          : errorText(error),
      )
    }
  }
  return (
    <section class="card stack" aria-label="Inject a fault">
      <h2>Inject a fault</h2>
      <div class="row">
        <label for={`${id}-kind`}>Fault</label>
        <select
          id={`${id}-kind`}
          onChange={(event) => {
            setChosen(Number(event.currentTarget.value))
            setTyped(null)
          }}
        >
          <For each={FAULT_TEMPLATES}>{({ name }, at) => <option value={at()}>{name}</option>}</For>
        </select>
        <label for={`${id}-node`}>Node</label>
        <select
          id={`${id}-node`}
          onChange={(event) => {
            setNode(event.currentTarget.value)
            setTyped(null)
          }}
        >
          <For each={names()}>{(name) => <option value={name}>{name}</option>}</For>
        </select>
        <label>
          <input
            type="checkbox"
            checked={isHidden()}
            onChange={(event) => setHidden(event.currentTarget.checked)}
          />{' '}
          hidden: visible only to admins
        </label>
      </div>
      <div>
        <label for={`${id}-text`}>
          Fault, in the format of <code>faults</code> in a scenario (without <code>at</code>)
        </label>
        <textarea
          id={`${id}-text`}
          class={styles['fault']}
          rows="3"
          spellcheck={false}
          value={text()}
          onInput={(event) => setTyped(event.currentTarget.value)}
          aria-invalid={problem() !== null}
        />
      </div>
      <Problem text={problem()} />
      <div class="row">
        <ActionButton
          class="danger"
          whyNot={session.whyNot('admin') ?? (nodes.data === undefined ? 'Loading the nodes.' : null)}
          onClick={() => void inject()}
        >
          {isHidden() ? 'Inject hidden fault' : 'Inject visible fault'}
        </ActionButton>
        <span class="quiet" role="status">
          {done()}
        </span>
      </div>
    </section>
  )
}
