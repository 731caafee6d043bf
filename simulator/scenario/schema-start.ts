/** Table of a task's `state` at the start of the scenario. Times count back from the start. */
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
} from '../document/rule.ts'
import { MAX_VRAM_MIB } from '../../protocol/limits.ts'

/** 10 years. */
const MAX_AGO_MS = 315_360_000_000
const MAX_COUNT = 1_000_000_000
const MAX_GPU_INDEX = 1023
const MAX_GPUS = 1024

const ago = duration(0, MAX_AGO_MS)
const vram = size(1, MAX_VRAM_MIB)

const markRule = record({
  this_round: required(boolean, 'Whether it was swapped out in the current round of its class on that GPU.'),
  decision: optional(
    nullable(integer(1, MAX_COUNT)),
    null,
    'Number of the swap-out decision; a lower number is the earlier swap-out.',
  ),
})

const growthRule = record({
  vram_mib: required(vram, 'VRAM per GPU including the growth.'),
  asked_ago: optional(ago, 0, 'Time of the request.'),
})

const placedRule = record(
  {
    node: required(text(63), 'Node of the task.'),
    gpus: required(list(integer(0, MAX_GPU_INDEX), 1, MAX_GPUS), 'GPU indexes on the node.'),
    vram_mib: optional(
      nullable(vram),
      null,
      'VRAM per GPU including granted growth; null: the vram_mib of the task, or the whole GPU.',
    ),
    noswap: optional(
      nullable(choice(0, 1)),
      null,
      'Effective value used by the accounting; null: the noswap of the task.',
    ),
    residency: optional(choice('resident', 'swapped_out'), 'resident', 'Residency of its memory.'),
    residual_mib: optional(
      integer(0, MAX_VRAM_MIB),
      0,
      'What its last swap-out by its own hooks left in VRAM on each GPU.',
    ),
    started_ago: optional(ago, 0, 'Start time on the node.'),
    resident_for: optional(nullable(ago), null, 'Since its start or its last return; null is started_ago.'),
    idle_for: optional(nullable(ago), null, 'Since its last use of the GPU; null: it wants the GPU.'),
    wants_for: optional(
      nullable(ago),
      null,
      'Time since it began to want the GPU or stopped; null: idle_for, or resident_for.',
    ),
    asked_ago: optional(
      nullable(ago),
      null,
      'Time since the swap-in of a swapped-out task was requested; null: the start of the scenario.',
    ),
    called_back: optional(boolean, false, 'Whether an operator requested its swap-in.'),
    out_for: optional(nullable(ago), null, 'Time since its swap-out; null: the start of the scenario.'),
    sent_away: optional(
      boolean,
      false,
      'Whether an operator swapped it out: it stays swapped out until its swap-in is requested.',
    ),
    growth: optional(nullable(growthRule), null, 'A pending allocation.'),
    back_off: optional(ago, 0, 'After a failed swap: time during which it cannot be a victim.'),
    marks: optional(
      list(nullable(markRule), 0, MAX_GPUS),
      [],
      'Last swap-out for each of its GPUs; null: never swapped out there.',
    ),
    done_us: optional(integer(0, 999), 0, 'Completed part of the first step of its work, in microseconds.'),
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
      'Position in the order of submission; null: after the earlier tasks of the file.',
    ),
    submitted_ago: optional(ago, 0, 'Time of submission.'),
    waited: optional(nullable(ago), null, 'Time in the pending queue; null: submitted_ago.'),
    held: optional(boolean, false, 'Whether an operator put it on hold.'),
    attempt: optional(
      nullable(integer(0, MAX_COUNT)),
      null,
      'Number of assignments; null: 1 for a placed task, else 0.',
    ),
    swap_outs: optional(integer(0, MAX_COUNT), 0, 'Number of swap-outs.'),
    first_started_ago: optional(
      nullable(ago),
      null,
      'Start of its first attempt; null: started_ago of a placed task, else never started.',
    ),
    placed: optional(nullable(placedRule), null, 'Placement; null: the task is pending.'),
  },
  { otherNames: { place: 'placed', placement: 'placed', position: 'number' } },
)
