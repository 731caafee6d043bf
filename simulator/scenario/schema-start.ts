/** Table of a task's `state`: where it stands when the scenario begins. Times count back from the start. */
import {
  boolean,
  choice,
  duration,
  integer,
  list,
  nullable,
  optional,
  record,
  required,
  size,
  text,
} from './rule.ts'
import { MAX_VRAM_MIB } from './schema-fleet.ts'

/** 10 years. */
const MAX_AGO_MS = 315_360_000_000
const MAX_COUNT = 1_000_000_000
const MAX_GPU_INDEX = 1023
const MAX_GPUS = 1024

const ago = duration(0, MAX_AGO_MS)
const vram = size(1, MAX_VRAM_MIB)

const markRule = record({
  this_round: required(boolean, 'It was swapped out in the present round of its class on that GPU.'),
  decision: optional(
    nullable(integer(1, MAX_COUNT)),
    null,
    'Number of the decision that did it: who left longer ago goes first.',
  ),
})

const growthRule = record({
  vram_mib: required(vram, 'Per GPU, with it.'),
  asked_ago: optional(ago, 0, 'When it was asked for.'),
})

const placedRule = record(
  {
    node: required(text(63), 'A node of the fleet.'),
    gpus: required(list(integer(0, MAX_GPU_INDEX), 1, MAX_GPUS), 'Its GPUs there, by index.'),
    vram_mib: optional(
      nullable(vram),
      null,
      'Per GPU, with growth that was granted; null is the vram_mib of the task, or the whole GPU.',
    ),
    noswap: optional(nullable(choice(0, 1)), null, 'As it is accounted; null is the noswap of the task.'),
    residency: optional(choice('resident', 'swapped_out'), 'resident', 'Where its bytes are.'),
    started_ago: optional(ago, 0, 'When it started there.'),
    resident_for: optional(nullable(ago), null, 'Since its start or its last return; null is started_ago.'),
    idle_for: optional(nullable(ago), null, 'Since its last use of the GPU; null: it wants the GPU.'),
    wants_for: optional(
      nullable(ago),
      null,
      'Since when it wants the GPU or does not; null is idle_for, or resident_for.',
    ),
    asked_ago: optional(
      nullable(ago),
      null,
      'Since when a swapped-out task asks to return; null is the start of the scenario.',
    ),
    called_back: optional(boolean, false, 'An operator wants it back.'),
    out_for: optional(
      nullable(ago),
      null,
      'Since when it is swapped out; null is the start of the scenario.',
    ),
    sent_away: optional(
      boolean,
      false,
      'An operator swapped it out: it stays out until something asks for its return.',
    ),
    growth: optional(nullable(growthRule), null, 'An allocation that is not granted yet.'),
    back_off: optional(ago, 0, 'After a failed swap it is no victim for so long from now.'),
    marks: optional(
      list(nullable(markRule), 0, MAX_GPUS),
      [],
      'For each of its GPUs; null: it was never swapped out there.',
    ),
    done_us: optional(
      integer(0, 999),
      0,
      'Microseconds of the first step of its work that are done already.',
    ),
  },
  {
    otherNames: { gpu: 'gpus', node_id: 'node', idle: 'idle_for' },
    check: ({ gpus, marks }, refuse) => {
      if (new Set(gpus).size !== gpus.length) refuse('gpus', 'names a GPU twice')
      if (marks.length > 0 && marks.length !== gpus.length)
        refuse('marks', `must have one entry for each of its ${gpus.length} GPUs`)
    },
  },
)

export const startRule = record(
  {
    number: optional(
      nullable(integer(1, MAX_COUNT)),
      null,
      'Place in the order of submission; null is after those before it in the file.',
    ),
    submitted_ago: optional(ago, 0, 'When it was submitted.'),
    waited: optional(nullable(ago), null, 'Since when it waits in the pending queue; null is submitted_ago.'),
    held: optional(boolean, false, 'An operator holds it back.'),
    attempt: optional(
      nullable(integer(0, MAX_COUNT)),
      null,
      'How often it was assigned; null is 1 for a placed task, else 0.',
    ),
    swap_outs: optional(integer(0, MAX_COUNT), 0, 'How often it was swapped out.'),
    first_started_ago: optional(
      nullable(ago),
      null,
      'Of its first attempt; null is started_ago of a placed task, else never.',
    ),
    placed: optional(nullable(placedRule), null, 'Where it has its place; null: it waits for one.'),
  },
  { otherNames: { place: 'placed', placement: 'placed', position: 'number' } },
)
