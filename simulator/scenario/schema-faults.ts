/** Table of `faults`: what breaks, when, and for how long. */
import { FAULT_KINDS, LOSSES, PERSIST_POINTS, STORE_POINTS } from './fault.ts'
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
} from './rule.ts'
import { MAX_GPUS_PER_NODE, MAX_HOST_MIB, MAX_NODES } from './schema-fleet.ts'
import { MAX_TIME_MS, permilleOf } from './schema-workload.ts'

export const MAX_FAULTS = 10_000
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

const at = required(duration(0, MAX_TIME_MS), 'When it begins.')
const lasting = required(duration(1, MAX_TIME_MS), 'How long it lasts.')
const healing = optional(
  nullable(duration(1, MAX_TIME_MS)),
  null,
  'How long it lasts; null: it is never healed.',
)
const absence = optional(
  nullable(duration(1, MAX_TIME_MS)),
  null,
  'How long it is away; null: of a node, for ever; of a controller, until its supervisor starts it again, 1 s later.',
)
const oneWay = optional(boolean, false, 'Only messages from the first of the two to the second.')
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
      'The machine loses power: what ran there is gone, its disk is kept. controller: its process is killed.',
    ),
    for: absence,
    at_point: optional(
      nullable(choice(...PERSIST_POINTS)),
      null,
      'Of the controller: it dies at this point of the first commit after that instant which gets so far; null: in that instant.',
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
    restart: required(choice('broker', 'controller'), 'It is stopped in good order and started again.'),
    for: optional(
      nullable(duration(1, MAX_TIME_MS)),
      null,
      `How long it is away; null: a broker ${BROKER_AWAY_MS / 1000} s, a controller not at all.`,
    ),
  },
  { otherNames },
)

const secondController = record(
  {
    at,
    second_controller: required(
      boolean,
      'true, and nothing else: a second controller begins with the same store while the first still runs.',
    ),
    for: healing,
  },
  {
    otherNames,
    check: ({ second_controller: isOn }, refuse) =>
      isOn ? undefined : refuse('second_controller', 'must be true'),
  },
)

const storeSetBack = record(
  {
    at,
    store_set_back: required(
      choice('controller'),
      "The controller's process is killed, and its store goes back to an earlier state.",
    ),
    back: optional(
      nullable(duration(0, MAX_TIME_MS)),
      null,
      'How far it goes back from that instant; null: `to` says it.',
    ),
    to: optional(
      nullable(choice(...STORE_POINTS)),
      null,
      'A named earlier state. start: as the run began. epoch_start: as the present controller read it at its own start.',
    ),
    loss: optional(
      choice(...LOSSES),
      'silent',
      'silent: the data folder went back with its mark, only the GPU servers can tell. accepted: the operator accepted the loss at the start (--accept-loss). restored: the operator restored a backup. After the last two the epoch is raised, and the controller starts in recovery.',
    ),
    for: optional(
      nullable(duration(1, MAX_TIME_MS)),
      null,
      'How long the controller is away; null: until its supervisor starts it again, 1 s later.',
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
    from: optional(duration(0, MAX_TIME_MS), 0, 'No fault begins before.'),
    until: required(duration(1, MAX_TIME_MS), 'No fault begins then or later.'),
    heal_at: optional(
      nullable(duration(1, MAX_TIME_MS)),
      null,
      'What still holds then is healed; null is until.',
    ),
    kinds: optional(
      nullable(list(choice(...FAULT_KINDS), 1, FAULT_KINDS.length)),
      null,
      'Which kinds; null is all of them but store_set_back.',
    ),
    rate_per_hour: optional(numberAbove(0, MAX_SWARM_RATE), 60, 'Faults per hour on average.'),
  },
  {
    otherNames: { to: 'until', heal: 'heal_at', rate: 'rate_per_hour' },
    check: ({ from, until, heal_at }, refuse) => {
      if (until <= from) refuse('until', 'must be after from')
      if (heal_at !== null && heal_at < until) refuse('heal_at', 'must not be before until')
    },
  },
)

export const faultRule = byKey({
  crash,
  bounce: record(
    { at, bounce: required(nodeName, 'The server process dies and is back at once; its tasks live on.') },
    { otherNames },
  ),
  node_disk_lost: record(
    {
      at,
      node_disk_lost: required(nodeName, 'The machine is replaced: what ran there and its disk are gone.'),
      for: optional(duration(0, MAX_TIME_MS), 0, 'How long until the new one is there.'),
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
      hold: required(linkRule, 'Messages between the two are kept and delivered at the end.'),
      one_way: oneWay,
      for: lasting,
    },
    { otherNames },
  ),
  delay: record(
    {
      at,
      delay: required(linkRule, 'Messages between the two take longer.'),
      ms: required(messageMs, 'By so much, one way.'),
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
      reorder: required(linkRule, 'Messages between the two overtake each other: each takes a random time.'),
      ms: required(messageMs, 'At most so much, one way.'),
      probability: always,
      one_way: oneWay,
      for: lasting,
    },
    { otherNames, check: refuseUnevenProbability },
  ),
  restart,
  second_controller: secondController,
  slow_disk: record(
    {
      at,
      slow_disk: required(choice('controller'), 'A commit takes its time; the next turn fills meanwhile.'),
      ms: required(
        durationOrMs(1, MAX_SLOW_DISK_MS),
        'It is durable after a random time up to this, and known to be after as much again.',
      ),
      for: lasting,
    },
    { otherNames },
  ),
  disk_full: record(
    { at, disk_full: required(endpoint, 'Nothing can be made durable there.'), for: lasting },
    { otherNames },
  ),
  fsync_error: record(
    {
      at,
      fsync_error: required(
        choice('controller'),
        'The next commit fails, and nobody knows whether it is durable; the process ends.',
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
          node: required(nodeName, 'Its node.'),
          gpu: required(integer(0, MAX_GPUS_PER_NODE - 1), 'Its index, from 0.'),
        }),
        'It falls off the bus: tasks on it end with an error, nothing is placed there.',
      ),
      for: healing,
    },
    { otherNames },
  ),
  slow_swap: record(
    {
      at,
      slow_swap: required(nodeName, 'Swaps that begin meanwhile take longer.'),
      factor: required(numberFrom(1, MAX_FACTOR), 'So many times, in steps of 0.001.'),
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
        'Others take host memory there: swap-outs that find too little fail.',
      ),
      mib: required(size(1, MAX_HOST_MIB), 'So much of it.'),
      for: lasting,
    },
    { otherNames },
  ),
  clock_drift: record(
    {
      at,
      clock_drift: required(nodeName, 'Its own clock goes at another speed.'),
      ppm: required(
        integer(-MAX_PPM, MAX_PPM),
        'Millionths by which it is fast; negative: slow. The protocol allows for 50000.',
      ),
      for: lasting,
    },
    { otherNames, check: ({ ppm }, refuse) => (ppm === 0 ? refuse('ppm', 'must not be 0') : undefined) },
  ),
  swarm: record({ swarm: required(swarmRule, 'Random faults, drawn from the seed.') }),
})

export const faultsRule = list(faultRule, 0, MAX_FAULTS)
