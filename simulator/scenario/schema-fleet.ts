/** Table of `fleet`: nodes by the dozen, one entry for those that are alike. */
import { SWAP_PROFILE_NAMES } from '../fleet/swap-profiles.ts'
import { MAX_ATTEMPTS_PER_NODE } from '../../protocol/schema.ts'
import { GROUP_ID_MAX_LENGTH, GROUP_ID_PATTERN } from '../../controller/domain/group.ts'
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
  scalarOr,
  size,
  text,
  textLike,
} from './rule.ts'

export const MAX_NODES = 20_000
export const MAX_GPUS_PER_NODE = 16
/** 16 TiB. */
export const MAX_VRAM_MIB = 16_777_216
export const MAX_HOST_MIB = 1_073_741_824
const MAX_RESERVE_MIB = 1_048_576
const MAX_OVERCOMMIT_PERCENT = 1000
const MAX_FIXED_MS = 3_600_000
const MAX_START_MS = 3_600_000
const MAX_MIB_PER_S = 16_777_216
/** As many as tasks may share a GPU. */
const MAX_SHARING = 1024
const MAX_FLEET_ENTRIES = 10_000
/** Of one node. */
const MAX_GROUPS = 10_000
const MAX_FOREIGN_STEPS = 10_000
/** 100 years. */
const MAX_FOREIGN_MS = 3_153_600_000_000

/** What the REST interface takes: a snapshot of any cluster can be loaded. */
export const groupName = textLike(
  new RegExp(GROUP_ID_PATTERN, 'u'),
  'a name of letters, digits, blanks inside, dot, - and _',
  GROUP_ID_MAX_LENGTH,
)
/** Node names become tokens of subjects on the wire, so they have no dots. */
const nodeNamePattern = textLike(
  /^([A-Za-z0-9]|\{i\})([A-Za-z0-9_-]|\{i\})*$/,
  'a name of letters, digits, - and _, with {i} for the number',
  63,
)

export const swapRule = scalarOr(
  choice(...SWAP_PROFILE_NAMES),
  record({
    out_mib_per_s: required(integer(1, MAX_MIB_PER_S), 'Device to host memory.'),
    in_mib_per_s: required(integer(1, MAX_MIB_PER_S), 'Host memory to device.'),
    out_fixed_ms: optional(
      integer(0, MAX_FIXED_MS),
      0,
      'What every swap-out costs before the first byte moves.',
    ),
    in_fixed_ms: optional(
      integer(0, MAX_FIXED_MS),
      0,
      'What every swap-in costs before the first byte moves.',
    ),
  }),
)

const gpuRule = record({
  model: optional(text(200), 'generic', 'Shown to people; plays no part in decisions.'),
  vram_mib: required(
    size(1, MAX_VRAM_MIB),
    'Physical VRAM: the total minus what the driver itself reserves.',
  ),
  swap: optional(swapRule, 'stock-driver', 'How long swaps take: a profile by name, or its numbers.'),
  start_ms: optional(
    integer(0, MAX_START_MS),
    0,
    'From the order to launch a process until it runs: the task is not started yet and waits, and its VRAM is taken.',
  ),
  efficiency: optional(
    list(integer(1, 10_000), 1, MAX_SHARING),
    [1000],
    'What k tasks with work get done together, in permille of what one alone does; the first value is for k = 1, the last holds for all above.',
  ),
})

const foreignRule = record({
  at: required(duration(0, MAX_FOREIGN_MS), 'From when on.'),
  mib: required(
    size(0, MAX_VRAM_MIB),
    'How much of each GPU; they get what is free in that instant, and ask no more.',
  ),
  gpus: optional(
    nullable(list(integer(0, MAX_GPUS_PER_NODE - 1), 1, MAX_GPUS_PER_NODE)),
    null,
    'Which GPUs of the node, from 0; null: all.',
  ),
})

export const nodesRule = record(
  {
    name: required(
      nodeNamePattern,
      'Name and id. {i} stands for the number of the node in this entry, from 0.',
    ),
    count: optional(integer(1, MAX_NODES), 1, 'How many of them.'),
    gpus: optional(integer(1, MAX_GPUS_PER_NODE), 1, 'GPUs of each node.'),
    gpu: required(gpuRule, 'What each GPU is like.'),
    groups: optional(
      list(groupName, 0, MAX_GROUPS),
      [],
      'Groups the node belongs to; without any it is in the common pool.',
    ),
    safety_reserve_mib: optional(
      nullable(size(0, MAX_RESERVE_MIB)),
      null,
      'Override of the cluster default, for each GPU.',
    ),
    overcommit_vram_percent: optional(
      nullable(integer(0, MAX_OVERCOMMIT_PERCENT)),
      null,
      'Override of the cluster default; 0 turns it off.',
    ),
    host_swap_mib: optional(
      nullable(size(0, MAX_HOST_MIB)),
      null,
      'Host memory for swapped-out bytes; null is twice the VRAM of the node.',
    ),
    id: optional(nullable(text(200)), null, 'What the controller knows it by; null follows from the name.'),
    cordoned: optional(boolean, false, 'Nothing new is placed there.'),
    host_link_mib_per_s: optional(
      nullable(integer(1, MAX_MIB_PER_S)),
      null,
      "What all copies of the node together move through its host memory; null: only each GPU's own link bounds them.",
    ),
    signals_wanted: optional(
      boolean,
      true,
      'A swapped-out task can tell that work has come for it; false: it stands still until it is back, and a probe brings it (swap_in_probe_seconds).',
    ),
    max_attempts: optional(
      integer(1, MAX_ATTEMPTS_PER_NODE),
      MAX_ATTEMPTS_PER_NODE,
      'Attempts that the server holds at once: tasks that run there, and ended ones that are not acknowledged.',
    ),
    foreign: optional(
      list(foreignRule, 0, MAX_FOREIGN_STEPS),
      [],
      'VRAM that others take, from one time to the next.',
    ),
  },
  {
    otherNames: {
      gpu_count: 'gpus',
      node: 'name',
      overcommit: 'overcommit_vram_percent',
      reserve: 'safety_reserve_mib',
    },
    check: ({ name, count, id, gpus, foreign }, refuse) => {
      if (count > 1 && id !== null) refuse('id', `names one node, and count is ${count}`)
      if (foreign.some((step) => step.gpus?.some((gpu) => gpu >= gpus) === true))
        refuse('foreign', `names a GPU above ${gpus - 1}, the last of the node`)
      if (count > 1 && !name.includes('{i}')) refuse('name', `needs {i} in it, because count is ${count}`)
    },
  },
)

export const fleetRule = list(nodesRule, 1, MAX_FLEET_ENTRIES)
