/** The goals and questions of this exercise, with the answers. The solution is shown after the end. */
import { useQuery, useQueryClient } from '@tanstack/solid-query'
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { ExerciseUnderWaySchema } from '../../../controller/api/simulations/exercise-schema.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { ConfirmedAction } from '../../design/confirm-dialog.tsx'
import { Problem } from '../../design/problem.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { Actions } from './actions.tsx'
import { answerOf } from './answer.ts'
import { useSessionControl } from './session-control.ts'
import { clockWords } from '../../format/figures.ts'
import { errorText } from '../../api/error-text.ts'

type UnderWay = Static<typeof ExerciseUnderWaySchema>

export default function Exercise(): JSX.Element {
  const control = useSessionControl()
  const { session } = useCluster()
  const queries = useQueryClient()
  const exercise = useQuery(() => ({
    queryKey: ['exercise', control.view()?.inputs],
    queryFn: ({ signal }: { signal: AbortSignal }) => control.api.get<UnderWay>('/exercise', {}, signal),
  }))
  return (
    <QueryState query={exercise}>
      {(under) => (
        <div class="stack">
          <h1 class="text">{under().title}</h1>
          <section class="card" aria-label="Assignment">
            <p class="text">{under().task}</p>
            <p class="quiet">
              {under().points} points. The exercise ends at {clockWords(under().ends_at_seconds)}. You can go
              back in time; the score counts the actions and answers of the final run.
            </p>
            <Show when={under().objectives.length > 0}>
              <h2>Goals</h2>
              <ul>
                <For each={under().objectives}>
                  {(objective) => (
                    <li class="text">
                      {objective.text} <span class="quiet">({objective.points} points)</span>
                    </li>
                  )}
                </For>
              </ul>
            </Show>
          </section>
          <Show when={under().questions.length > 0}>
            <section class="card stack" aria-label="Questions">
              <h2>Questions</h2>
              <For each={under().questions.map(({ id }) => id)}>
                {(id) => (
                  <Question
                    question={
                      under().questions.find((each) => each.id === id) as UnderWay['questions'][number]
                    }
                    given={under().answers[id] ?? null}
                    whyNot={session.whyNot('submitter')}
                    onAnswered={() => void queries.invalidateQueries({ queryKey: ['exercise'] })}
                  />
                )}
              </For>
            </section>
          </Show>
          <section class="card" aria-label="Your actions">
            <h2>Your actions</h2>
            <Actions actions={under().actions} />
          </section>
          <div class="row">
            <ConfirmedAction
              label="Finish and show score"
              title="Finish the exercise?"
              confirm="Finish"
              whyNot={session.whyNot('submitter')}
              run={() => control.finish()}
            >
              Time advances to {clockWords(under().ends_at_seconds)}, the session ends, and your score is
              shown with an explanation.
            </ConfirmedAction>
          </div>
        </div>
      )}
    </QueryState>
  )
}

interface QuestionProps {
  readonly question: UnderWay['questions'][number]
  readonly given: string | number | null
  readonly whyNot: string | null
  readonly onAnswered: () => void
}

function Question(props: QuestionProps): JSX.Element {
  const control = useSessionControl()
  const [typed, setTyped] = createSignal<string | null>(null)
  const [problem, setProblem] = createSignal<string | null>(null)
  const text = (): string => typed() ?? String(props.given ?? '')
  const id = (): string => `question-${props.question.id}`
  const answer = async (): Promise<void> => {
    setProblem(null)
    try {
      await control.send('/answers', { question: props.question.id, answer: answerOf(text()) })
      props.onAnswered()
    } catch (error) {
      setProblem(errorText(error))
    }
  }
  const submit = (event: Event): void => {
    event.preventDefault()
    if (props.whyNot === null && text().trim() !== '') void answer()
  }
  return (
    <form onSubmit={(event) => submit(event)}>
      <label class="text" for={id()}>
        {props.question.ask} <span class="quiet">({props.question.points} points)</span>
      </label>
      <div class="row">
        <Show
          when={props.question.choices}
          fallback={
            <input
              id={id()}
              autocomplete="off"
              maxlength="200"
              value={text()}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          }
        >
          {(choices) => (
            <select id={id()} value={text()} onChange={(event) => setTyped(event.currentTarget.value)}>
              <option value="">…</option>
              <For each={choices()}>{(choice) => <option value={choice}>{choice}</option>}</For>
            </select>
          )}
        </Show>
        <ActionButton
          whyNot={props.whyNot ?? (text().trim() === '' ? 'Enter an answer.' : null)}
          onClick={() => void answer()}
        >
          Answer
        </ActionButton>
        <span class="quiet text" role="status">
          {props.given === null ? 'not answered' : `answered: ${props.given}`}
        </span>
      </div>
      <Problem text={problem()} />
    </form>
  )
}
