/**
 * What the agent of a node of Kubernetes and the operator tell each other: the agent reports its pods, and
 * the answer says which pods are there and where their bytes should be. Orders are repeated until they are
 * carried out, so that neither a lost answer nor a restart changes anything.
 */
import { checkOf } from './check.ts'
import {
  count,
  flag,
  GPU_UUID,
  integer,
  list,
  oneOf,
  optional,
  orNull,
  record,
  text,
  type Value,
} from './fields.ts'
import {
  MAX_ATTEMPTS_PER_NODE,
  MAX_COUNT,
  MAX_DETAIL_LENGTH,
  MAX_GPUS,
  MAX_HOST_MIB,
  MAX_ID_LENGTH,
  MAX_VRAM_MIB,
} from './limits.ts'

/** Names of objects of Kubernetes. */
const MAX_NAME_LENGTH = 253
/** Of one pod, that get its GPUs. */
export const MAX_CONTAINERS = 64
const MAX_AGENT_WAIT_MS = 5_000
/** Maximum number of ports that the socket watch accepts for one task. */
export const MAX_WAKE_PORTS = 64

const OUTCOMES = [
  'done',
  'woke_while_locked',
  'copy_failed',
  'no_vram',
  'no_host_memory',
  'not_swappable',
] as const

const MAX_UUID_LENGTH = 100
/** As the controller has them (`controller/model/victim-class.ts`). */
const SWAP_CLASSES = ['non_p0', 'non_p0_warm', 'p0', 'p0_warm'] as const
/** One for each GPU and class. */
export const MAX_SWAP_MARKS = MAX_GPUS * SWAP_CLASSES.length

/** The last swap-out of a pod for the VRAM of one GPU, as the rounds of its class count it. */
const swapMark = record({
  gpu: text(1, MAX_UUID_LENGTH, 'UUID', GPU_UUID),
  class: oneOf(SWAP_CLASSES),
  round: count('Round in which it was swapped out'),
  decision: count('Number of the decision'),
})

function swapMarks(description: string) {
  return list(swapMark, 0, MAX_SWAP_MARKS, description)
}

const podReport = record({
  pod: text(1, MAX_ID_LENGTH, 'UID'),
  residency: oneOf(['in', 'out', 'moving'], 'Where its bytes are'),
  order: integer(0, MAX_COUNT, 'The last order that was begun; 0: none since the start of the agent'),
  outcome: orNull(oneOf(OUTCOMES), 'Of that order; null: it is not over'),
  why_not: orNull(text(0, MAX_DETAIL_LENGTH), 'Why it cannot be swapped'),
  wants_gpu: flag('It used a GPU within the last seconds'),
  idle_ms: integer(0, MAX_COUNT, 'Since its last use'),
  wakeable: optional(flag('It is out, and requests are what brings it back: no probe is needed')),
  marks: optional(swapMarks('As the last order with marks had them. Absent: none are known')),
})

const gpuReport = record({
  uuid: text(1, MAX_UUID_LENGTH, 'As its driver names it', GPU_UUID),
  model: text(0, MAX_NAME_LENGTH),
  vram_mib: integer(1, MAX_VRAM_MIB, 'Physical'),
  foreign_mib: optional(
    integer(0, MAX_VRAM_MIB, 'In use by processes of no pod for some seconds; absent: not known yet'),
  ),
})

const agentReport = record({
  node: text(1, MAX_NAME_LENGTH),
  host_swap_mib: integer(0, MAX_HOST_MIB, 'Host memory for pods that are swapped out'),
  wait_ms: integer(0, MAX_AGENT_WAIT_MS, 'How long the answer may wait for an order'),
  gpus: optional(list(gpuReport, 0, MAX_GPUS, 'All of the node; absent: not known')),
  pods: list(podReport, 0, MAX_ATTEMPTS_PER_NODE),
  rounds: optional(swapMarks('The latest of each GPU and class, also of pods that have ended')),
})

const podOrder = record({
  pod: text(1, MAX_ID_LENGTH, 'UID'),
  containers: list(text(1, MAX_ID_LENGTH), 0, MAX_CONTAINERS, 'IDs of its containers that run'),
  gpus: list(integer(0, MAX_GPUS - 1), 0, MAX_GPUS, 'Places in the list of GPUs of the node'),
  vram_mib: integer(0, MAX_VRAM_MIB, 'On each GPU'),
  order: integer(0, MAX_COUNT, '0: it stays where it is'),
  wanted: oneOf(['in', 'out']),
  wake_ports: optional(
    list(
      integer(1, 65_535),
      0,
      MAX_WAKE_PORTS,
      'TCP ports of its network: a request to one wakes it while it is out. Absent: none does',
    ),
  ),
  wake_on_request: optional(flag('Its owner says that nothing else has to wake it. Absent: not said')),
  marks: optional(swapMarks('For the agent to keep before it carries out the order. Absent: as before')),
})

const agentAnswer = record({ pods: list(podOrder, 0, MAX_ATTEMPTS_PER_NODE) })

export type SwapMark = Value<typeof swapMark>
export type PodReport = Value<typeof podReport>
export type ReportedGpu = Value<typeof gpuReport>
export type AgentReport = Value<typeof agentReport>
export type PodOrder = Value<typeof podOrder>
export type AgentAnswer = Value<typeof agentAnswer>

export const checkAgentReport = checkOf(agentReport)
export const checkAgentAnswer = checkOf(agentAnswer)
