/** The text of a scenario, with what is wrong marked at its line. */
import { createUniqueId, For, Show, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { ValidationSchema } from '../../../controller/api/schema/scenario.ts'
import { lineCount, offsetOf } from './text-lines.ts'
import styles from './simulator.module.css'

type Problem = Static<typeof ValidationSchema>['problems'][number]

export interface ScenarioEditorProps {
  readonly text: string
  readonly problems: readonly Problem[]
  readonly onType: (text: string) => void
}

export function ScenarioEditor(props: ScenarioEditorProps): JSX.Element {
  const id = createUniqueId()
  let area!: HTMLTextAreaElement
  let gutter!: HTMLOListElement
  const goTo = ({ line, column }: Problem): void => {
    const at = offsetOf(props.text, line, column)
    area.focus()
    area.setSelectionRange(at, at)
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
          onInput={(event) => props.onType(event.currentTarget.value)}
          onScroll={() => (gutter.scrollTop = area.scrollTop)}
        />
      </div>
      <div id={`${id}-problems`} role="status">
        <Show when={props.problems.length > 0}>
          <ul aria-label="Problems">
            <For each={props.problems}>
              {(problem) => (
                <li class="text bad">
                  <button type="button" onClick={() => goTo(problem)}>
                    Line {problem.line}, column {problem.column}
                  </button>{' '}
                  {problem.path === '' ? '' : `${problem.path}: `}
                  {problem.detail}
                </li>
              )}
            </For>
          </ul>
        </Show>
      </div>
    </div>
  )
}
