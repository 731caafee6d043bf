/** Table of `faults`: kind, time and duration of each fault. */
import { FAULT_KINDS, HOOK_FAILURES, LEASE_LOSSES, LOSSES, PERSIST_POINTS, STORE_POINTS } from './fault.ts'
import {
  boolean,
  byKey,
  choice,
  duration,
  durationOrMs,
  integer,
  list,
  nullable,
  numberAbove,
  numberFrom,
  optional,
  pair,
  record,
  required,
  scalarOr,
  size,
  textLike,
} from '../document/rule.ts'
import { MAX_GPUS_PER_NODE, MAX_NODES } from './schema-fleet.ts'
import { MAX_HOST_MIB, MAX_VRAM_MIB } from '../../protocol/limits.ts'
import { MAX_TIME_MS, permilleOf } from './schema-workload.ts'

const MAX_FAULTS = 10_000
/** A day. */
const MAX_MESSAGE_MS = 86_400_000
const MAX_SLOW_DISK_MS = 60_000
const MAX_FACTOR = 1000
const MAX_PPM = 500_000
const MAX_SWARM_RATE = 100_000
const BROKER_AWAY_MS = 1000

type Refuse = (field: string | null, detail: string) => void

const nodeName = textLike(/^[A-Za-z0-9][A-Za-z0-9_-]*$/, 'the name of a node', 80)
const endpoint = textLike(/^[A-Za-z0-9][A-Za-z0-9_-]*$/, 'controller or the name of a node', 80)
const endpoints = scalarOr(endpoint, list(nodeName, 1, MAX_NODES))
const linkRule = scalarOr(
  textLike(
    /^[A-Za-z0-9][A-Za-z0-9_-]*$/,
    'all, the name of a node, or a list of two: controller and a node',
    80,
  ),
  pair(endpoints, endpoints),
)

const at = required(duration(0, MAX_TIME_MS), 'Start time.')
const lasting = required(duration(1, MAX_TIME_MS), 'Duration.')
const healing = optional(nullable(duration(1, MAX_TIME_MS)), null, 'Duration; null: never healed.')
const absence = optional(
  nullable(duration(1, MAX_TIME_MS)),
  null,
  'Downtime; null: a node never returns; a controller is restarted by its supervisor after 1 s.',
)
const oneWay = optional(boolean, false, 'Whether only messages from the first to the second are affected.')
const probability = required(numberAbove(0, 1), 'Share of the messages, in steps of 0.001.')
const always = optional(numberAbove(0, 1), 1, 'Share of the messages, in steps of 0.001.')
const messageMs = durationOrMs(1, MAX_MESSAGE_MS)

const refuseUnevenProbability = (
  { probability: share }: { readonly probability: number },
  refuse: Refuse,
): void => {
  if (permilleOf(share) === null) refuse('probability', 'must be a probability in steps of 0.001')
}

const otherNames = { duration: 'for', until: 'for', time: 'at', p: 'probability', by: 'ms' }

const crash = record(
  {
    at,
    crash: required(
      endpoint,
      'The machine loses power: its processes end, its disk is kept. controller: its process is killed.',
    ),
    for: absence,
    at_point: optional(
      nullable(choice(...PERSIST_POINTS)),
      null,
      'Point of the first commit after that time at which the controller crashes; null: at that time.',
    ),
  },
  {
    otherNames,
    check: ({ crash: machineName, at_point }, refuse) => {
      if (at_point !== null && machineName !== 'controller')
        refuse('at_point', 'goes with crash: controller only; a node has no such points')
    },
  },
)

const restart = record(
  {
    at,
    restart: required(choice('broker', 'controller'), 'A graceful restart.'),
    for: optional(
      nullable(duration(1, MAX_TIME_MS)),
      null,
      `Downtime; null: a broker ${BROKER_AWAY_MS / 1000} s, a controller not at all.`,
    ),
  },
  { otherNames },
)

const secondController = record(
  {
    at,
    second_controller: required(
      boolean,
      'Must be true: a second controller starts with the same store while the first still runs.',
    ),
    for: healing,
  },
  {
    otherNames,
    check: ({ second_controller: isOn }, refuse) =>
      isOn ? undefined : refuse('second_controller', 'must be true'),
  },
)

const leaseLost = record(
  {
    at,
    lease_lost: required(
      choice(...LEASE_LOSSES),
      'The leader loses its lease, and a second controller, which waits, takes over. cut: requests of the ' +
        'leader do not reach the store. unanswered: they do, and their answers are lost. paused: its ' +
        'process is stopped, and continues at the end.',
    ),
    for: lasting,
  },
  { otherNames },
)

const storeFrozen = record(
  {
    at,
    store_frozen: required(
      boolean,
      'Must be true: the store that two controllers share answers nothing. What they send meanwhile ' +
        'arrives at the end.',
    ),
    for: lasting,
  },
  {
    otherNames,
    check: ({ store_frozen: isOn }, refuse) => (isOn ? undefined : refuse('store_frozen', 'must be true')),
  },
)

const storeFailover = record(
  {
    at,
    store_failover: required(
      boolean,
      'Must be true: the store that two controllers share fails, and a copy that has every commit takes ' +
        'its place at the end. All connections end.',
    ),
    for: lasting,
  },
  {
    otherNames,
    check: ({ store_failover: isOn }, refuse) =>
      isOn ? undefined : refuse('store_failover', 'must be true'),
  },
)

const storeSetBack = record(
  {
    at,
    store_set_back: required(
      choice('controller'),
      "The controller's process is killed, and its store is set back to an earlier state.",
    ),
    back: optional(
      nullable(duration(0, MAX_TIME_MS)),
      null,
      'Length of the lost history; null: as `to` specifies.',
    ),
    to: optional(
      nullable(choice(...STORE_POINTS)),
      null,
      'A named earlier state. start: at the start of the run. epoch_start: as the current ' +
        'controller read it at its start.',
    ),
    loss: optional(
      choice(...LOSSES),
      'silent',
      'silent: the data folder was set back with its mark file, so only the GPU servers can ' +
        'detect it. accepted: the operator accepted the loss at the start (--accept-loss). ' +
        'restored: the operator restored a backup. After the last two the epoch increases and the ' +
        'controller starts in recovery.',
    ),
    for: optional(
      nullable(duration(1, MAX_TIME_MS)),
      null,
      'Downtime of the controller; null: restarted by its supervisor after 1 s.',
    ),
  },
  {
    otherNames: { ...otherNames, by: 'back', seconds: 'back', how: 'loss' },
    check: ({ at: atMs, back, to, loss }, refuse) => {
      if (back === null && to === null) refuse('back', 'needs a duration, unless `to` names an earlier state')
      if (back === null) return
      if (to !== null) refuse('to', 'must be left out where `back` says how far the store goes back')
      if (back > atMs)
        refuse(
          'back',
          'must not reach before the start of the run: write `to: start` for the state at its start',
        )
      if (back === 0 && loss !== 'restored')
        refuse('back', `must be above 0 with loss: ${loss}: nothing would be lost`)
    },
  },
)

const swarmRule = record(
  {
    from: optional(duration(0, MAX_TIME_MS), 0, 'No fault begins before this time.'),
    until: required(duration(1, MAX_TIME_MS), 'No fault begins at or after this time.'),
    heal_at: optional(
      nullable(duration(1, MAX_TIME_MS)),
      null,
      'Time at which remaining faults heal; null: until.',
    ),
    kinds: optional(
      nullable(list(choice(...FAULT_KINDS), 1, FAULT_KINDS.length)),
      null,
      'Kinds of faults; null: all but store_set_back, those of two controllers and those of hooks.',
    ),
    rate_per_hour: optional(numberAbove(0, MAX_SWARM_RATE), 60, 'Mean number of faults per hour.'),
  },
  {
    otherNames: { to: 'until', heal: 'heal_at', rate: 'rate_per_hour' },
    check: ({ from, until, heal_at }, refuse) => {
      if (until <= from) refuse('until', 'must be after from')
      if (heal_at !== null && heal_at < until) refuse('heal_at', 'must not be before until')
    },
  },
)

const faultRule = byKey({
  crash,
  bounce: record(
    {
      at,
      bounce: required(nodeName, 'The server process crashes and restarts at once; its tasks keep running.'),
    },
    { otherNames },
  ),
  node_disk_lost: record(
    {
      at,
      node_disk_lost: required(nodeName, 'The machine is replaced: its processes and its disk are lost.'),
      for: optional(duration(0, MAX_TIME_MS), 0, 'Time until the new machine is available.'),
    },
    { otherNames },
  ),
  partition: record(
    {
      at,
      partition: required(linkRule, 'Messages between the two are lost.'),
      one_way: oneWay,
      for: lasting,
    },
    { otherNames },
  ),
  hold: record(
    {
      at,
      hold: required(linkRule, 'Messages between the two are held and delivered at the end.'),
      one_way: oneWay,
      for: lasting,
    },
    { otherNames },
  ),
  delay: record(
    {
      at,
      delay: required(linkRule, 'Messages between the two take longer.'),
      ms: required(messageMs, 'Added delay, one way.'),
      probability: always,
      one_way: oneWay,
      for: lasting,
    },
    { otherNames, check: refuseUnevenProbability },
  ),
  drop: record(
    {
      at,
      drop: required(linkRule, 'Some messages between the two are lost.'),
      probability,
      one_way: oneWay,
      for: lasting,
    },
    { otherNames, check: refuseUnevenProbability },
  ),
  duplicate: record(
    {
      at,
      duplicate: required(linkRule, 'Some messages between the two arrive twice.'),
      probability,
      one_way: oneWay,
      for: lasting,
    },
    { otherNames, check: refuseUnevenProbability },
  ),
  reorder: record(
    {
      at,
      reorder: required(linkRule, 'Messages between the two are reordered: each has a random delay.'),
      ms: required(messageMs, 'Maximum delay, one way.'),
      probability: always,
      one_way: oneWay,
      for: lasting,
    },
    { otherNames, check: refuseUnevenProbability },
  ),
  restart,
  second_controller: secondController,
  lease_lost: leaseLost,
  store_frozen: storeFrozen,
  store_failover: storeFailover,
  slow_disk: record(
    {
      at,
      slow_disk: required(
        choice('controller'),
        'Commits are slow; the next transaction collects events meanwhile.',
      ),
      ms: required(
        durationOrMs(1, MAX_SLOW_DISK_MS),
        'A commit is durable after a random time up to this, and acknowledged after another such time.',
      ),
      for: lasting,
    },
    { otherNames },
  ),
  disk_full: record(
    { at, disk_full: required(endpoint, 'Writes to the disk fail.'), for: lasting },
    { otherNames },
  ),
  fsync_error: record(
    {
      at,
      fsync_error: required(
        choice('controller'),
        'The next commit fails with an unknown outcome, and the process ends.',
      ),
    },
    { otherNames },
  ),
  store_set_back: storeSetBack,
  gpu_lost: record(
    {
      at,
      gpu_lost: required(
        record({
          node: required(nodeName, 'Node of the GPU.'),
          gpu: required(integer(0, MAX_GPUS_PER_NODE - 1), 'Index of the GPU, from 0.'),
        }),
        'The GPU falls off the bus: its tasks end with an error, and no tasks are placed on it.',
      ),
      for: healing,
    },
    { otherNames },
  ),
  slow_swap: record(
    {
      at,
      slow_swap: required(nodeName, 'Swaps that begin during the fault take longer.'),
      factor: required(numberFrom(1, MAX_FACTOR), 'Slowdown factor, in steps of 0.001.'),
      for: lasting,
    },
    {
      otherNames,
      check: ({ factor }, refuse) =>
        permilleOf(factor) === null ? refuse('factor', 'must be in steps of 0.001') : undefined,
    },
  ),
  host_memory_short: record(
    {
      at,
      host_memory_short: required(
        nodeName,
        'Other processes use host memory: swap-outs that do not fit fail.',
      ),
      mib: required(size(1, MAX_HOST_MIB), 'Used host memory.'),
      for: lasting,
    },
    { otherNames },
  ),
  clock_drift: record(
    {
      at,
      clock_drift: required(nodeName, 'The clock of the node drifts.'),
      ppm: required(
        integer(-MAX_PPM, MAX_PPM),
        'Drift in parts per million; negative: slow. The protocol tolerates 50000.',
      ),
      for: lasting,
    },
    { otherNames, check: ({ ppm }, refuse) => (ppm === 0 ? refuse('ppm', 'must not be 0') : undefined) },
  ),
  hooks_fail: record(
    {
      at,
      hooks_fail: required(nodeName, 'Swap hooks of tasks there misbehave when they are called.'),
      how: required(
        choice(...HOOK_FAILURES),
        'hang: they do not answer. late: a task that is told to resume does so 2 s after the deadline. ' +
          'lie: a task says that all of its VRAM is free, and keeps keeps_mib. error: they answer with ' +
          'an error. die: the task crashes.',
      ),
      keeps_mib: optional(
        nullable(size(0, MAX_VRAM_MIB)),
        null,
        'With lie: what it keeps on each GPU, at most its demand; null: everything.',
      ),
      for: lasting,
    },
    {
      otherNames,
      check: ({ how, keeps_mib }, refuse) => {
        if (keeps_mib !== null && how !== 'lie') refuse('keeps_mib', 'goes with how: lie only')
      },
    },
  ),
  swarm: record({ swarm: required(swarmRule, 'Random faults, drawn from the seed.') }),
})

export const faultsRule = list(faultRule, 0, MAX_FAULTS)
