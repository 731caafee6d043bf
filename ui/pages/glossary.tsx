/** The keys, and the words of the pages, each in a sentence. The formulas stand in docs/glossary.md. */
import { For, type JSX } from 'solid-js'

const WORDS: readonly (readonly [word: string, meaning: string])[] = [
  [
    'Task',
    'A request for GPU execution: so much VRAM on so many GPUs, with a priority, and perhaps a command.',
  ],
  [
    'Pending, running, completed',
    'Pending: not placed. Running: placed on GPUs, in VRAM or swapped out. Completed: ended, in whatever way.',
  ],
  ['Resident', 'Its memory is in VRAM. Swapped out: on the host. Moving: on the way, one way or the other.'],
  ['Physical VRAM', 'What the GPUs have.'],
  ['Used VRAM', 'What is in it now: resident tasks and foreign processes.'],
  ['Allocated VRAM', 'What is promised to placed tasks, whether resident or swapped out.'],
  ['Schedulable VRAM', 'Physical × (1 + overcommit ÷ 100): what may be promised.'],
  [
    'Overcommit',
    'How much more VRAM is promised than there is, in percent. Idle tasks are swapped out to make that true.',
  ],
  ['Safety reserve', 'VRAM of each GPU that is kept free.'],
  ['Utilization', 'The share of time in which at least one kernel ran.'],
  [
    'Starvation',
    'The share of wanted GPU time that was not given: queue (not started), swap (started, not resident), compute (resident, sharing).',
  ],
  [
    'Unheard',
    'Beside starvation: what swapped-out tasks waited with work, where nothing tells that work has come for them.',
  ],
  ['noswap', 'A task that is never swapped out. It counts against physical VRAM, not against schedulable.'],
  ['P0', 'The highest priority: swapped out only for another P0.'],
  [
    'Victim',
    'A task that is swapped out so that another has room. Only idle ones are, and everybody in turn.',
  ],
  ['Group, common pool', 'Nodes set apart by name; nodes of no group are the common pool.'],
  [
    'Recovery',
    'After a restore or an accepted loss: nothing is placed, requeued or given up until every known node has reported.',
  ],
  [
    'Ahead of the store',
    'A node that knows events which the store lacks, because the store went back in time. It gets no command.',
  ],
  [
    'Quarantined attempt',
    'It runs on a node and the store does not know it. It keeps its VRAM until an operator adopts or stops it.',
  ],
  [
    'Reservation',
    'Room that is kept for the first of the queue, so that small tasks do not starve a large one.',
  ],
]

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['g d', 'Dashboard'],
  ['g t', 'Tasks'],
  ['g n', 'Nodes'],
  ['g g', 'Groups'],
  ['g p', 'Planner'],
  ['g m', 'Simulator'],
  ['g e', 'Events'],
  ['g s', 'Settings'],
  ['g x, g f', 'In a session of the simulator: the exercise, the faults.'],
  ['/', 'The search on top'],
  ['?', 'This page'],
  ['← →', 'In a chart that has the focus: the point before, the next one'],
]

export default function Glossary(): JSX.Element {
  return (
    <div class="stack">
      <h1>Glossary</h1>
      <section class="card" aria-label="Keys">
        <h2>Keys</h2>
        <dl>
          <For each={KEYS}>
            {([keys, what]) => (
              <>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{what}</dd>
              </>
            )}
          </For>
        </dl>
      </section>
      <dl class="card">
        <For each={WORDS}>
          {([word, meaning]) => (
            <>
              <dt>
                <strong>{word}</strong>
              </dt>
              <dd>{meaning}</dd>
            </>
          )}
        </For>
      </dl>
    </div>
  )
}
