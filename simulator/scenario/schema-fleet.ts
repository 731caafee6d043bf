/** Table of `fleet`: one entry for each set of identical nodes. */
import { SWAP_PROFILE_NAMES } from './swap-profiles.ts'
import { MAX_ATTEMPTS_PER_NODE } from '../../protocol/limits.ts'
import { GROUP_ID_MAX_LENGTH, GROUP_ID_PATTERN } from '../../controller/model/group.ts'
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
} from '../document/rule.ts'
import {
  MAX_HOST_LINK_MIB_PER_S,
  MAX_HOST_MIB,
  MAX_RESERVE_MIB,
  MAX_VRAM_MIB,
} from '../../protocol/limits.ts'

export const MAX_NODES = 20_000
export const MAX_GPUS_PER_NODE = 16
const MAX_OVERCOMMIT_PERCENT = 1000
const MAX_FIXED_MS = 3_600_000
const MAX_START_MS = 3_600_000
const MAX_PREPARE_SECONDS = 86_400
/** The maximum number of tasks that share a GPU. */
const MAX_SHARING = 1024
const MAX_FLEET_ENTRIES = 10_000
/** Maximum number of groups of one node. */
const MAX_GROUPS = 10_000
const MAX_FOREIGN_STEPS = 10_000
/** 100 years. */
const MAX_FOREIGN_MS = 3_153_600_000_000

/** The same pattern as in the REST API, so that every snapshot of a cluster can be loaded. */
export const groupName = textLike(
  new RegExp(GROUP_ID_PATTERN, 'u'),
  'a name of letters, digits, blanks inside, dot, - and _',
  GROUP_ID_MAX_LENGTH,
)
/** Node names become tokens of subjects on the wire, so they contain no dots. */
const nodeNamePattern = textLike(
  /^([A-Za-z0-9]|\{i\})([A-Za-z0-9_-]|\{i\})*$/,
  'a name of letters, digits, - and _, with {i} for the number',
  63,
)

export const swapRule = scalarOr(
  choice(...SWAP_PROFILE_NAMES),
  record({
    out_mib_per_s: required(integer(1, MAX_HOST_LINK_MIB_PER_S), 'Device to host memory.'),
    in_mib_per_s: required(integer(1, MAX_HOST_LINK_MIB_PER_S), 'Host memory to device.'),
    out_fixed_ms: optional(
      integer(0, MAX_FIXED_MS),
      0,
      'Fixed latency of a swap-out before the first byte moves.',
    ),
    in_fixed_ms: optional(
      integer(0, MAX_FIXED_MS),
      0,
      'Fixed latency of a swap-in before the first byte moves.',
    ),
  }),
)

const methodRule = record({
  swap: required(swapRule, 'Its speed: a named profile, or its numbers.'),
  residual_mib: optional(
    size(0, MAX_VRAM_MIB),
    0,
    'VRAM that a task keeps on each GPU while it is swapped out; at most its demand.',
  ),
})

const gpuRule = record({
  model: optional(text(200), 'generic', 'Display name; not used in decisions.'),
  vram_mib: required(size(1, MAX_VRAM_MIB), 'Physical VRAM: the total minus the reserve of the driver.'),
  swap: optional(swapRule, 'stock-driver', 'Swap speed: a named profile, or its numbers.'),
  swap_hooks: optional(
    nullable(methodRule),
    null,
    'Swap speed of tasks with swap_method hooks; null: as `swap`.',
  ),
  swap_engine: optional(
    nullable(methodRule),
    null,
    'Swap speed of tasks with swap_method engine; null: as `swap`.',
  ),
  driver_swaps: optional(
    boolean,
    true,
    'Whether the driver can swap tasks; false: only their own hooks can, and tasks without become noswap.',
  ),
  start_ms: optional(
    integer(0, MAX_START_MS),
    0,
    'Process launch time. Meanwhile the task waits and its VRAM is reserved.',
  ),
  efficiency: optional(
    list(integer(1, 10_000), 1, MAX_SHARING),
    [1000],
    'Combined throughput of k working tasks, in permille of one task alone; the first value is ' +
      'for k = 1, the last applies to all larger k.',
  ),
})

const foreignRule = record({
  at: required(duration(0, MAX_FOREIGN_MS), 'Start time.'),
  mib: required(
    size(0, MAX_VRAM_MIB),
    'VRAM used on each GPU; limited to the VRAM that is free at that instant.',
  ),
  gpus: optional(
    nullable(list(integer(0, MAX_GPUS_PER_NODE - 1), 1, MAX_GPUS_PER_NODE)),
    null,
    'GPU indexes on the node, from 0; null: all.',
  ),
})

const nodesRule = record(
  {
    name: required(
      nodeNamePattern,
      'Name and ID. {i} is replaced by the index of the node in this entry, from 0.',
    ),
    count: optional(integer(1, MAX_NODES), 1, 'Number of nodes.'),
    gpus: optional(integer(1, MAX_GPUS_PER_NODE), 1, 'GPUs of each node.'),
    gpu: required(gpuRule, 'Properties of each GPU.'),
    groups: optional(
      list(groupName, 0, MAX_GROUPS),
      [],
      'Groups of the node; without groups it is in the common pool.',
    ),
    safety_reserve_mib: optional(
      nullable(size(0, MAX_RESERVE_MIB)),
      null,
      'Override of the cluster default, for each GPU.',
    ),
    overcommit_vram_percent: optional(
      nullable(integer(0, MAX_OVERCOMMIT_PERCENT)),
      null,
      'Override of the cluster default; 0 disables it.',
    ),
    host_swap_mib: optional(
      nullable(size(0, MAX_HOST_MIB)),
      null,
      'Host memory for swapped-out bytes; null is twice the VRAM of the node.',
    ),
    id: optional(nullable(text(200)), null, 'Node ID in the controller; null: derived from the name.'),
    cordoned: optional(boolean, false, 'No new placements on the node.'),
    host_link_mib_per_s: optional(
      nullable(integer(1, MAX_HOST_LINK_MIB_PER_S)),
      null,
      "Limit of all copies through the node's host memory; null: only each GPU's own link limits them.",
    ),
    signals_wanted: optional(
      boolean,
      true,
      'Whether a swapped-out task can signal that it has work; false: it is paused until a ' +
        'probe swaps it in (swap_in_probe_seconds).',
    ),
    max_attempts: optional(
      integer(1, MAX_ATTEMPTS_PER_NODE),
      MAX_ATTEMPTS_PER_NODE,
      'Maximum number of attempts on the server: running tasks and ended tasks that are not acknowledged.',
    ),
    prepare_seconds: optional(
      integer(0, MAX_PREPARE_SECONDS),
      0,
      'Time to get an image that the node does not have, before the start of a task; no VRAM is committed ' +
        'meanwhile. 0: it has every image.',
    ),
    foreign: optional(list(foreignRule, 0, MAX_FOREIGN_STEPS), [], 'VRAM used by other processes over time.'),
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
