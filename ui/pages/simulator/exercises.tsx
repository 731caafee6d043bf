/** The exercises with their learning goals. */
import { useNavigate } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createSignal, For, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { ExercisePageSchema } from '../../../controller/api/simulations/exercise-schema.ts'
import type { SimulationBody } from '../../../controller/api/simulations/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { Problem } from '../../design/problem.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { seconds } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import styles from './simulator.module.css'
import { errorText } from '../../api/error-text.ts'

type Exercise = Static<typeof ExercisePageSchema>['items'][number]

export function Exercises(): JSX.Element {
  const { api } = useCluster()
  const exercises = useQuery(() => ({
    queryKey: ['exercises'],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<Static<typeof ExercisePageSchema>>('/exercises', {}, signal),
    staleTime: Infinity,
  }))
  return (
    <section aria-label="Exercises">
      <h2>Exercises</h2>
      <QueryState
        query={exercises}
        isEmpty={({ items }) => items.length === 0}
        whenEmpty={<p class="quiet">This controller has no exercises.</p>}
      >
        {(page) => (
          <div class="grid">
            <For each={page().items}>{(exercise) => <Card exercise={exercise} />}</For>
          </div>
        )}
      </QueryState>
    </section>
  )
}

function Card(props: { readonly exercise: Exercise }): JSX.Element {
  const { api, session } = useCluster()
  const navigate = useNavigate()
  const [problem, setProblem] = createSignal<string | null>(null)
  const [isBusy, setBusy] = createSignal(false)
  const start = async (): Promise<void> => {
    setProblem(null)
    setBusy(true)
    try {
      const { body } = await api.send<SimulationBody>(
        'POST',
        `/exercises/${pathSegment(props.exercise.name)}/start`,
      )
      navigate(`/simulator/${pathSegment(body.id)}/exercise`)
    } catch (error) {
      setProblem(errorText(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <article class={`card ${styles['exercise']}`} aria-label={props.exercise.title}>
      <h3 class="text">{props.exercise.title}</h3>
      <p class="text" data-grows>
        {props.exercise.task}
      </p>
      <p class="quiet">
        {counted(props.exercise.questions.length, 'question')}
        {counted(props.exercise.objectives.length, 'objective')}
        {props.exercise.points} points;{' '}
        {seconds(props.exercise.ends_at_seconds - props.exercise.begins_at_seconds)} of virtual time
      </p>
      <ActionButton whyNot={isBusy() ? 'Opening.' : session.whyNot('submitter')} onClick={() => void start()}>
        Start
      </ActionButton>
      <Problem text={problem()} />
    </article>
  )
}

/** `2 questions, `; empty for 0. */
function counted(count: number, what: string): string {
  return count === 0 ? '' : `${count} ${what}${count === 1 ? '' : 's'}, `
}
