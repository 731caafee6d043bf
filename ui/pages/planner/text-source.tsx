/** A scenario as text. The controller reads it as it is typed, and says at which line what is wrong. */
import { createEffect, createSignal, createUniqueId, For, on, onCleanup, Show, type JSX } from 'solid-js'
import type { ValidationBody } from '../../../controller/api/schema/scenario.ts'
import { whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { chosen, notYet, type Chosen } from './choice.ts'
import styles from './planner.module.css'

export interface TextSourceProps {
  readonly text: string
  readonly onText: (text: string) => void
  readonly onChosen: (choice: Chosen) => void
}

/** After the last key. */
const READ_AFTER_MS = 400

export function TextSource(props: TextSourceProps): JSX.Element {
  const { api } = useCluster()
  const id = createUniqueId()
  const [answer, setAnswer] = createSignal<ValidationBody | null>(null)
  const [failure, setFailure] = createSignal<string | null>(null)
  let area!: HTMLTextAreaElement
  let timer: ReturnType<typeof setTimeout> | undefined
  let asked = 0
  const check = async (text: string): Promise<void> => {
    const question = ++asked
    try {
      const { body } = await api.send<ValidationBody>('POST', '/scenarios/validate', { body: { scenario_text: text } })
      if (question !== asked) return
      setAnswer(body)
      props.onChosen(body.is_valid ? chosen({ scenario_text: text }) : notYet('The text is not right yet.'))
    } catch (error) {
      if (question === asked) setFailure(error instanceof Error ? error.message : String(error))
    }
  }
  createEffect(
    on(
      () => props.text,
      (text) => {
        clearTimeout(timer)
        asked += 1
        setFailure(null)
        if (text.trim() === '') {
          setAnswer(null)
          props.onChosen(notYet('Write a scenario, or open a file.'))
          return
        }
        props.onChosen(notYet('The text is being read.'))
        timer = setTimeout(() => void check(text), READ_AFTER_MS)
      },
    ),
  )
  onCleanup(() => clearTimeout(timer))
  const goTo = (line: number, column: number): void => {
    const before = props.text.split('\n').slice(0, line - 1)
    const start = before.reduce((sum, each) => sum + each.length + 1, 0)
    area.focus()
    area.setSelectionRange(start + column - 1, start + (props.text.split('\n')[line - 1] ?? '').length)
    area.scrollTop = (area.scrollHeight / props.text.split('\n').length) * Math.max(0, line - 4)
  }
  const open = async (file: File | undefined): Promise<void> => {
    if (file !== undefined) props.onText(await file.text())
  }
  return (
    <div class={styles['field']}>
      <label for={id}>Scenario as YAML or JSON</label>
      <textarea
        id={id}
        ref={area}
        class={styles['text']}
        spellcheck={false}
        value={props.text}
        aria-invalid={answer()?.is_valid === false}
        aria-describedby={`${id}-state`}
        onInput={(event) => props.onText(event.currentTarget.value)}
      />
      <label>
        Or a file: <input type="file" accept=".yaml,.yml,.json" onChange={(event) => void open(event.currentTarget.files?.[0])} />
      </label>
      <div id={`${id}-state`} role="status">
        <Show when={failure()}>{(words) => <p class="bad text">{words()}</p>}</Show>
        <Show when={answer()?.facts}>
          {(facts) => (
            <p class="good text">
              {facts().name}: {whole(facts().nodes)} nodes, {whole(facts().gpus)} GPUs, about {whole(facts().expected_tasks)} tasks beside
              those of traces.
            </p>
          )}
        </Show>
        <Show when={answer()?.is_valid === false}>
          <ol class={styles['problems']} aria-label="Problems of the text">
            <For each={answer()?.problems}>
              {({ line, column, path, detail }) => (
                <li class="text">
                  <button type="button" onClick={() => goTo(line, column)}>
                    Line {line}, column {column}
                  </button>
                  : {path === '' ? '' : `${path}: `}
                  {detail}
                </li>
              )}
            </For>
          </ol>
        </Show>
      </div>
    </div>
  )
}
