/** Sweeps that begin with one click: this cluster first, then scenarios that show one thing each. */
import { useNavigate } from '@solidjs/router'
import { createSignal, For, type JSX } from 'solid-js'
import type { SimulationBody } from '../../../controller/api/simulations/schema.ts'
import type { TraceBody } from '../../../controller/api/simulations/trace-schema.ts'
import type { ApiClient } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { Problem } from '../../design/problem.tsx'
import type { ScenarioBodyPart } from '../../scenario/choice.ts'
import { useCluster } from '../../state/cluster.tsx'
import { DEFAULT_OBJECTIVE, defaultPercents, PERCENTS, readNumbers } from './grid.ts'
import styles from './planner.module.css'
import { recordHistory } from './record-history.ts'
import { tracedScenario, type SnapshotParts } from './traced-scenario.ts'
import { errorText } from '../../api/error-text.ts'

interface StartCard {
  readonly title: string
  readonly words: string
  readonly seeds: readonly number[]
  readonly part: (api: ApiClient, onProgress: (words: string) => void) => Promise<ScenarioBodyPart>
}

const HOURS = 24
/** Nothing is drawn: each further seed would give the same run. */
const RECORDED = [1]
const DRAWN = [1, 2, 3]

const library = (title: string, scenario: string, words: string): StartCard => ({
  title,
  words,
  seeds: DRAWN,
  part: () => Promise.resolve({ scenario }),
})

const CARDS: readonly StartCard[] = [
  {
    title: 'This cluster, last 24 h',
    words:
      'Tasks that ended in the last 24 hours run again on the current nodes, with their recorded GPU use.',
    seeds: RECORDED,
    async part(api, onProgress) {
      const trace = `here-${HOURS}h`
      const body = await recordHistory(api, HOURS, onProgress)
      onProgress('Uploading and checking…')
      const { body: kept } = await api.send<TraceBody>('POST', '/traces', {
        query: { name: trace, format: 'headroom' },
        body,
        contentType: 'application/octet-stream',
      })
      if (kept.tasks === 0)
        throw new Error('No task ended in the last 24 hours. Use “This cluster, now” instead.')
      return { scenario_inline: tracedScenario(await api.get<SnapshotParts>('/snapshot'), trace, null) }
    },
  },
  {
    title: 'This cluster, now',
    words: 'Running and pending tasks continue from their current state.',
    seeds: RECORDED,
    part: async (api) => ({ scenario_inline: await api.get<SnapshotParts>('/snapshot') }),
  },
  library(
    'Idle servers',
    'live-overcommit',
    'Tasks fill four GPUs and become idle while other tasks wait for VRAM.',
  ),
  library('Bursts of requests', 'capacity-bursts-of-serving', 'Model servers receive requests in bursts.'),
  library(
    'Working days',
    'capacity-day-and-night',
    'The load is three times as high during the day and almost zero at night.',
  ),
  library(
    'Fragments',
    'capacity-fragmentation',
    'A large task does not fit on any GPU, although enough VRAM is free in total.',
  ),
  library(
    'Thrashing',
    'thrash-guard',
    'The gaps between requests are shorter than the idle period, so swaps do not help.',
  ),
]

export function StartCards(): JSX.Element {
  const { api, session, feed } = useCluster()
  const navigate = useNavigate()
  const path = usePath()
  const [busy, setBusy] = createSignal<StartCard | null>(null)
  const [words, setWords] = createSignal('')
  const [problem, setProblem] = createSignal<string | null>(null)
  const run = async (card: StartCard): Promise<void> => {
    setBusy(card)
    setProblem(null)
    setWords('Preparing…')
    try {
      const percents = readNumbers(
        defaultPercents(feed.summary()?.overcommit.default_percent ?? null),
        PERCENTS,
      )
      const { body } = await api.send<SimulationBody>('POST', '/simulations/sweep', {
        body: {
          ...(await card.part(api, setWords)),
          overcommit_percents: percents.ok ? percents.values : [],
          seeds: card.seeds,
          objectives: [DEFAULT_OBJECTIVE],
        },
      })
      navigate(path(`/planner/${body.id}`))
    } catch (error) {
      setProblem(errorText(error))
    } finally {
      setBusy(null)
    }
  }
  const whyNot = (): string | null =>
    session.whyNot('submitter') ?? (busy() === null ? null : 'A sweep is being prepared.')
  return (
    <section aria-label="Start a sweep" class="stack">
      <ul class={styles['cards']}>
        <For each={CARDS}>
          {(card) => (
            <li class="card">
              <h2>{card.title}</h2>
              <p class="quiet">{card.words}</p>
              <ActionButton
                class={card === CARDS[0] ? 'primary' : ''}
                whyNot={whyNot()}
                onClick={() => void run(card)}
              >
                {busy() === card ? words() : 'Run'}
                <span class="visually-hidden"> {card.title}</span>
              </ActionButton>
            </li>
          )}
        </For>
      </ul>
      <Problem text={problem()} />
    </section>
  )
}
