/** The keys, and the terms of the pages in a sentence each. docs/glossary.md has the formulas. */
import { For, type JSX } from 'solid-js'
import { KeyList } from '../components/key-list.tsx'
import { usePageTitle } from '../state/page-title.ts'

const WORDS: readonly (readonly [word: string, meaning: string])[] = [
  ['Task', 'A request for GPU execution: VRAM on one or more GPUs, with a priority and an optional command.'],
  [
    'Pending, running, completed',
    'Pending: not placed. Running: placed on GPUs, resident or swapped out. Completed: ended for any reason.',
  ],
  [
    'Resident, swapped out, moving',
    'Resident: the memory of the task is in VRAM. Swapped out: the memory is on the host. Moving: the ' +
      'memory is being transferred between VRAM and the host.',
  ],
  ['Physical VRAM', 'The capacity of the GPUs.'],
  ['Used VRAM', 'The VRAM that resident tasks and foreign processes use now.'],
  ['Allocated VRAM', 'The VRAM of placed tasks, whether resident or swapped out.'],
  ['Schedulable VRAM', 'Physical × (1 + overcommit ÷ 100): the VRAM that can be allocated.'],
  [
    'Overcommit',
    'Schedulable VRAM beyond physical VRAM, in percent. Idle tasks are swapped out to make room.',
  ],
  ['Safety reserve', 'VRAM that is kept free on each GPU.'],
  ['Utilization', 'The share of time in which at least one kernel ran.'],
  [
    'Starvation',
    'The share of the wanted GPU time that tasks did not get: queue (not started), swap (started but not ' +
      'resident) and compute (resident but sharing the GPU).',
  ],
  [
    'Unsignalled wait',
    'The time that swapped-out tasks waited because they could not signal that they had work. It is not ' +
      'part of starvation.',
  ],
  [
    'noswap',
    'A task that is never swapped out. It counts against physical VRAM, not against schedulable VRAM.',
  ],
  ['P0', 'The highest priority. P0 tasks are swapped out only for other P0 tasks.'],
  [
    'Victim',
    'A task that is swapped out to make room for another. Only idle tasks become victims, and they take ' +
      'turns.',
  ],
  ['Group, common pool', 'A group is a named set of nodes. Nodes without a group form the common pool.'],
  [
    'Recovery',
    'The state after the store was restored or a loss of data was accepted. No task is placed, requeued ' +
      'or declared lost until every known node has reported.',
  ],
  [
    'Ahead of the store',
    'A node with events that are missing from the store, because the store went back to an earlier state. ' +
      'The controller sends no commands to the node.',
  ],
  [
    'Quarantined attempt',
    'A running attempt that is not in the store. It keeps its VRAM until an operator adopts or stops it.',
  ],
  [
    'Reservation',
    'GPUs that are kept for the first task in the queue so that small tasks do not starve a large one.',
  ],
]

export default function Glossary(): JSX.Element {
  usePageTitle(() => 'Glossary')
  return (
    <div class="stack">
      <h1>Glossary</h1>
      <section class="card" aria-label="Keyboard shortcuts">
        <h2>Keyboard shortcuts</h2>
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
