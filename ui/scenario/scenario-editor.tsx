/**
 * A scenario as text and as a form, kept in step: the form changes single values and leaves the rest of the
 * text unchanged. The controller validates the text while it is edited, and reports errors by line.
 */
import { createEffect, createSignal, createUniqueId, For, on, onCleanup, Show, type JSX } from 'solid-js'
import type { ValidationBody } from '../../controller/api/simulations/scenario-schema.ts'
import { plural } from '../format/figures.ts'
import { useCluster } from '../state/cluster.tsx'
import { chosen, notYet, type Chosen } from './choice.ts'
import { ScenarioForm } from './scenario-form.tsx'
import { lineCount, offsetOf } from './text-lines.ts'
import styles from './scenario.module.css'
import { errorText } from '../api/error-text.ts'

type Problem = ValidationBody['problems'][number]

export interface ScenarioEditorProps {
  readonly text: string
  readonly onText: (text: string) => void
  readonly onChosen: (choice: Chosen) => void
}

/** Delay after the last key press. */
const READ_AFTER_MS = 400

export function ScenarioEditor(props: ScenarioEditorProps): JSX.Element {
  const { api } = useCluster()
  const [answer, setAnswer] = createSignal<ValidationBody | null>(null)
  const [failure, setFailure] = createSignal<string | null>(null)
  let timer: ReturnType<typeof setTimeout> | undefined
  let asked = 0
  const check = async (text: string): Promise<void> => {
    const question = ++asked
    try {
      const { body } = await api.send<ValidationBody>('POST', '/scenarios/validate', {
        body: { scenario_text: text },
      })
      if (question !== asked) return
      setAnswer(body)
      props.onChosen(
        body.is_valid
          ? chosen({ scenario_text: text }, body.facts?.swept_fields)
          : notYet('The text is not valid yet.'),
      )
    } catch (error) {
      if (question === asked) setFailure(errorText(error))
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
          props.onChosen(notYet('Enter a scenario, or open a file.'))
          return
        }
        props.onChosen(notYet('Validating the text.'))
        timer = setTimeout(() => void check(text), READ_AFTER_MS)
      },
    ),
  )
  onCleanup(() => clearTimeout(timer))
  const open = async (file: File | undefined): Promise<void> => {
    if (file !== undefined) props.onText(await file.text())
  }
  return (
    <div class={styles['both']}>
      <ScenarioForm text={props.text} onText={props.onText} />
      <div class={styles['side']}>
        <TextArea text={props.text} onText={props.onText} problems={answer()?.problems ?? []}>
          <Show when={failure()}>{(words) => <p class="bad text">{words()}</p>}</Show>
          <Show when={answer()?.facts}>
            {(facts) => (
              <p class="good text">
                Valid. {facts().name}: {plural(facts().nodes, 'node', 'nodes')},{' '}
                {plural(facts().gpus, 'GPU', 'GPUs')}, about {plural(facts().expected_tasks, 'task', 'tasks')}
                , not counting traces.
              </p>
            )}
          </Show>
        </TextArea>
        <label>
          Open a file:{' '}
          <input
            type="file"
            accept=".yaml,.yml,.json"
            onChange={(event) => void open(event.currentTarget.files?.[0])}
          />
        </label>
      </div>
    </div>
  )
}

interface TextAreaProps {
  readonly text: string
  readonly problems: readonly Problem[]
  readonly onText: (text: string) => void
  /** Messages about the text, other than its errors. */
  readonly children: JSX.Element
}

function TextArea(props: TextAreaProps): JSX.Element {
  const id = createUniqueId()
  let area!: HTMLTextAreaElement
  let gutter!: HTMLOListElement
  const goTo = ({ line, column }: Problem): void => {
    const at = offsetOf(props.text, line, column)
    area.focus()
    const end = props.text.indexOf('\n', at)
    area.setSelectionRange(at, end === -1 ? props.text.length : end)
    area.scrollTop = (line / lineCount(props.text)) * area.scrollHeight - area.clientHeight / 2
  }
  const isWrong = (line: number): boolean => props.problems.some((problem) => problem.line === line)
  return (
    <div>
      <label for={id}>Scenario, YAML or JSON</label>
      <div class={styles['editor']}>
        <ol class={styles['lines']} ref={gutter} aria-hidden="true">
          <For each={Array.from({ length: lineCount(props.text) }, (_, at) => at + 1)}>
            {(line) => <li classList={{ [styles['wrong'] as string]: isWrong(line) }}>{line}</li>}
          </For>
        </ol>
        <textarea
          id={id}
          ref={area}
          spellcheck={false}
          autocomplete="off"
          wrap="off"
          value={props.text}
          aria-invalid={props.problems.length > 0}
          aria-describedby={`${id}-problems`}
          onInput={(event) => props.onText(event.currentTarget.value)}
          onScroll={() => (gutter.scrollTop = area.scrollTop)}
        />
      </div>
      <div id={`${id}-problems`} role="status">
        {props.children}
        <Show when={props.problems.length > 0}>
          <ol class={styles['problems']} aria-label="Errors in the text">
            <For each={props.problems}>
              {(problem) => (
                <li class="text bad">
                  <button type="button" onClick={() => goTo(problem)}>
                    Line {problem.line}, column {problem.column}
                  </button>
                  : {problem.path === '' ? '' : `${problem.path}: `}
                  {problem.detail}
                </li>
              )}
            </For>
          </ol>
        </Show>
      </div>
    </div>
  )
}
