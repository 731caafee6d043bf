/** The keys, and the terms of the pages in a sentence each. docs/glossary.md has the formulas. */
import { For, type JSX } from 'solid-js'
import { KeyList } from '../components/key-list.tsx'
import { usePageTitle } from '../state/page-title.ts'

const WORDS: readonly (readonly [word: string, meaning: string])[] = [
  ['Task', 'A request for GPU execution: VRAM on one or more GPUs, with a priority and an optional command.'],
  [
    'Pending, running, completed',
    'Pending: not placed. Running: placed on GPUs, in VRAM or swapped out. Completed: ended, for any reason.',
  ],
  ['Resident', 'Its memory is in VRAM. Swapped out: on the host. Moving: in transfer between them.'],
  ['Physical VRAM', 'Capacity of the GPUs.'],
  ['Used VRAM', 'Current use by resident tasks and foreign processes.'],
  ['Allocated VRAM', 'VRAM of placed tasks, resident or swapped out.'],
  ['Schedulable VRAM', 'Physical × (1 + overcommit ÷ 100): the VRAM that can be allocated.'],
  [
    'Overcommit',
    'Schedulable VRAM beyond physical VRAM, in percent. Idle tasks are swapped out to make room.',
  ],
  ['Safety reserve', 'VRAM that is kept free on each GPU.'],
  ['Utilization', 'The share of time in which at least one kernel ran.'],
  [
    'Starvation',
    'The share of wanted GPU time that was not served: queue (not started), swap (started, not ' +
      'resident), compute (resident, sharing).',
  ],
  [
    'Unsignalled wait',
    'Wait of swapped-out tasks that had work and could not signal it. Not part of starvation.',
  ],
  [
    'noswap',
    'A task that is never swapped out. It counts against physical VRAM, not against schedulable VRAM.',
  ],
  ['P0', 'The highest priority: swapped out only for other P0 tasks.'],
  ['Victim', 'A task that is swapped out to make room for another. Only idle tasks are victims, in turn.'],
  ['Group, common pool', 'Nodes reserved by name; nodes without a group form the common pool.'],
  [
    'Recovery',
    'After a restore or an accepted loss: nothing is placed, requeued or given up until every known ' +
      'node has reported.',
  ],
  [
    'Ahead of the store',
    'A node that knows events that the store does not have, because the store went back in time. It ' +
      'gets no ' +
      'commands.',
  ],
  [
    'Quarantined attempt',
    'A running attempt that the store does not know. It keeps its VRAM until an operator adopts or stops it.',
  ],
  [
    'Reservation',
    'GPUs that are kept for the first task in the queue, so that small tasks do not starve a large one.',
  ],
]

export default function Glossary(): JSX.Element {
  usePageTitle(() => 'Glossary')
  return (
    <div class="stack">
      <h1>Glossary</h1>
      <section class="card" aria-label="Keys">
        <h2>Keys</h2>
        <KeyList />
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
