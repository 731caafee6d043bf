/**
 * Renders why a pending task waits as one sentence with the numbers, and phrases shared with other
 * explanations.
 */
import { gpusInWords, inMib, namesInWords, secondsUntil } from '../../model/words.ts'
import type { TaskSpec } from '../../../protocol/task.ts'
import type { Feature, Instant, MountFeature } from '../../../protocol/units.ts'
import type { Gpu, Placement, Task } from '../../model/placement.ts'
import type { PendingFacts } from './explain-facts.ts'
import type { WaitReason } from './explain-reasons.ts'
import type { Tally } from './explain-tally.ts'
import {
  mayDisplace,
  missingFeature,
  requiredFeatures,
  type Required,
} from '../../policy/placement/feasible.ts'

const BYTES_OF_MIB = 1024 * 1024

const PAUSES = {
  HELD: 'On hold: an operator must release the task before it is placed.',
  STORE_BEHIND:
    'Nodes are ahead of the store, which went back to an earlier state. Restore a newer store ' +
    '(see `headroom recovery status`).',
  RECOVERY:
    'The controller is recovering from a loss of data: no task is placed until every known node has ' +
    'reported (see `headroom recovery status`).',
  AWAITING_NODES:
    'The controller has just started: no task is placed until the nodes that were up have reported, ' +
    'or until 15 s have passed.',
} as const satisfies Partial<Record<WaitReason, string>>

const CAN_NEVER_FIT = 'The task can never fit: it needs'

const RESULT_AWAITED = 'Waiting for the result of an earlier attempt, which its node has announced.'

export function sentenceOfPending(
  reason: WaitReason,
  tally: Tally,
  facts: PendingFacts,
  retryAt: Instant | null,
): string {
  const { spec } = facts.queued.task
  const need = needInWords(spec)
  const needs = `the task needs ${need}`
  const best = bestInWords(tally)
  const have = inMib(tally.nearest[0]?.haveMib)
  switch (reason) {
    case 'HELD':
    case 'STORE_BEHIND':
    case 'RECOVERY':
    case 'AWAITING_NODES':
      return PAUSES[reason]
    case 'GROUP_NOT_FOUND':
      return missingGroupsInWords(facts.missingGroups)
    case 'GROUP_EMPTY':
      return emptyGroupsInWords(facts.emptyGroups)
    case 'NEVER_FITS':
      return `${CAN_NEVER_FIT} ${need}; ${best} offers ${have} (physical VRAM minus the reserve).`
    case 'EXCEEDS_NODE_GPU_COUNT':
      return tooFewGpusInWords(tally, spec.gpuCount, best)
    case 'NO_NODES':
      return noNodesInWords(spec.groups)
    case 'NODES_OFFLINE':
    case 'NODES_CORDONED':
      return closedInWords(tally, reason === 'NODES_OFFLINE' ? 'offline' : 'cordoned')
    case 'EXEC_NOT_ALLOWED':
      return leasesOnlyInWords(tally)
    case 'FEATURE_MISSING':
      return featureInWords(tally, spec)
    case 'MAX_TASKS_PER_GPU':
      return fullGpusInWords(tally, facts)
    case 'NODE_TASK_LIMIT':
      return limitInWords(tally)
    case 'SWAP_SPACE_EXHAUSTED':
      return hostMemoryInWords(tally, needs, best, have)
    case 'WAITING_VRAM':
      return `Waiting for VRAM: ${needs}; ${best} has ${have} of commit room left.`
    case 'WAITING_PHYSICAL_VRAM':
      return (
        `Waiting for physical VRAM: the noswap task needs ${need}; ` +
        `${best} has ${have} free.${victimsInWords(tally, facts, retryAt)}`
      )
    case 'NEVER_RESIDENT':
      return (
        `Waiting for noswap tasks or foreign processes to free VRAM: ${needs}; ` +
        `${best} can offer ${have}.`
      )
    case 'WOULD_STRAND':
      return (
        `Waiting so that placed tasks can return to VRAM: the noswap task needs ${need}; ` +
        `${best} can spare ${have}.`
      )
    case 'FRAGMENTED':
      return (
        `Waiting for unfragmented VRAM: ${needs}; ${best} has enough in total, ` +
        `but no more than ${have} ${spec.gpuCount === 1 ? 'on one GPU' : `on each of ${spec.gpuCount} GPUs`}.`
      )
    case 'WAITING_EXCLUSIVE_GPU':
      return exclusiveInWords(tally, facts)
    case 'NO_ELIGIBLE_VICTIM':
      return (
        `Waiting for a victim: ${needs}; ${best} has ${have} free or used by tasks that may be swapped ` +
        `out.${victimsInWords(tally, facts, retryAt)}`
      )
    case 'AWAITING_NODE_ACK':
      return refusedInWords(tally)
    case 'RESERVED_FOR_ANOTHER':
      return reservedInWords(tally, facts, `${best} has ${have}`)
    case 'QUEUED_BEHIND':
      return queuedInWords(facts)
    case 'OWNER_LIMIT':
      return ownerLimitInWords(facts)
    case 'PREPARING':
      return preparingInWords(tally, facts)
    case 'START_REFUSED':
      return refusalsInWords(facts)
    case 'REQUEUE_DELAY':
      return requeueDelayInWords(facts)
    case 'RESULT_AWAITED':
      return `${RESULT_AWAITED} ${triedAgainInWords(facts)}`
    case 'RESIDENCY_IMPOSSIBLE':
    case 'SWAPPING_OUT_FOR_YOU':
      throw new Error(`broken invariant: ${reason} is not a reason of a pending task without reserved VRAM`)
  }
}

function fullGpusInWords(tally: Tally, { policy }: PendingFacts): string {
  return (
    `Waiting for a task to end: not enough GPUs on ${nodesInWords(tally)} are below the maximum of ` +
    `${policy.maxTasksPerGpu} per GPU (max_tasks_per_gpu).`
  )
}

function refusedInWords(tally: Tally): string {
  return (
    `The task was refused by ${nodesInWords(tally)}. It can be placed there again after the next report ` +
    `of ${tally.nodeCount === 1 ? 'the node' : 'these nodes'}, or when another task ends there.`
  )
}

function closedInWords(tally: Tally, how: string): string {
  const are = tally.nodeCount === 1 ? 'is' : 'are'
  return `Waiting for a node: the task would fit on ${nodesInWords(tally)}, which ${are} ${how}.`
}

function preparingInWords(tally: Tally, { queued: { task } }: PendingFacts): string {
  const current = task.preparations.find(({ state }) => state !== 'prepared')
  const needs = whatIsPrepared(task.spec)
  if (current === undefined) {
    const are = tally.nodeCount === 1 ? 'is' : 'are'
    return (
      `Waiting to be prepared (${needs}): ${nodesInWords(tally)} ${are} already preparing the maximum ` +
      'number of tasks.'
    )
  }
  const { nodeName, bytesDone, bytesTotal } = current
  const mib = (bytes: number) => inMib(Math.ceil(bytes / BYTES_OF_MIB))
  const bytes = bytesTotal === null ? '' : `: ${mib(bytesDone)} of ${mib(bytesTotal)}`
  return (
    `The task is being prepared on ${nodeName} (${needs})${bytes}. ` +
    'No VRAM is committed during preparation.'
  )
}

function whatIsPrepared({ image = null, workdir = null }: Task['spec']): string {
  if (image === null) return 'files'
  return workdir === null ? 'image' : 'image and files'
}

/** Maximum number of nodes whose messages are quoted. */
const MAX_QUOTED = 5

/** Quotes the nodes' messages. */
function refusalsInWords(facts: PendingFacts): string {
  const { refusals } = facts.queued.task.trouble
  const again = triedAgainInWords(facts)
  if (refusals.length === 0) return `Nodes could not start the task. ${again}`
  const quoted = refusals.slice(0, MAX_QUOTED).map(({ nodeName, detail }) => `${nodeName}: ${detail}`)
  const rest = refusals.length > MAX_QUOTED ? `; and ${refusals.length - MAX_QUOTED} more` : ''
  return `The task could not be started. ${quoted.join('; ')}${rest}. ${again}`
}

function triedAgainInWords({ queued, now }: PendingFacts): string {
  const { pause, refusals } = queued.task.trouble
  // Without a pause: once the first node is eligible again.
  const at = pause?.until ?? Math.min(...refusals.map(({ until }) => until ?? Infinity))
  const when = at === Infinity ? 'once' : `in ${Math.max(1, Math.ceil((at - now) / 1000))} s, or earlier if`
  return (
    `The controller tries again ${when} the task is released or changed, or a node joins ` +
    'or is uncordoned.'
  )
}

function noNodesInWords(groups: readonly string[]): string {
  const those = groups.length === 0 ? 'without a group' : `in ${groupsInWords(groups)}`
  return `Waiting for a node: no node ${those} has registered.`
}

function tooFewGpusInWords({ nearest }: Tally, gpuCount: number, best: string): string {
  const most = nearest[0]?.margin ?? 0
  return `${CAN_NEVER_FIT} ${gpuCount} GPUs on one node; ${best} has ${most}.`
}

function leasesOnlyInWords(tally: Tally): string {
  const accept = tally.nodeCount === 1 ? 'accepts' : 'accept'
  const itsServer = tally.nodeCount === 1 ? 'its server' : 'their servers'
  return (
    `Waiting for a node that runs commands: the task would fit on ${nodesInWords(tally)}, which ${accept} ` +
    `only leases. To allow commands, start ${itsServer} with \`headroom gpu-server --allow-exec\`.`
  )
}

/** What each feature gives to a task, in words. */
const FEATURE_WORDS: Readonly<Record<Feature, string>> = {
  image: 'container images',
  files: 'uploaded files',
  env: 'environment variables',
  secrets: 'secrets',
  mounts: 'mounted folders',
  limits: 'memory and CPU limits',
  ports: 'ports',
  swap_hooks: 'swap hooks',
  swap_engine: 'sleep modes of inference engines',
  attach: 'processes of leases',
  prepare: 'preparation before the start',
  channels: 'channels into running tasks',
  vram_limit: 'VRAM limits',
}

function featureWords(feature: Required): string {
  return isMount(feature)
    ? `has the data folder ${feature.slice('mount:'.length)}`
    : `supports ${FEATURE_WORDS[feature]}`
}

function isMount(feature: Required): feature is MountFeature {
  return feature.startsWith('mount:')
}

function featureInWords(tally: Tally, spec: Task['spec']): string {
  const node = tally.nearest[0]?.node
  const missing = node === undefined ? null : missingFeature(requiredFeatures(spec), node)
  const supports =
    missing === null ? 'has a required feature' : `${featureWords(missing)} (feature ${missing})`
  const lack = tally.nodeCount === 1 ? 'lacks' : 'lack'
  return (
    `Waiting for a node that ${supports}: the task would fit on ${nodesInWords(tally)}, which ${lack} ` +
    'this feature.'
  )
}

function requeueDelayInWords(facts: PendingFacts): string {
  const { earlyEnds } = facts.queued.task.trouble
  const attempts = earlyEnds === 1 ? 'One attempt' : `${earlyEnds} attempts`
  return `${attempts} of this task ended soon after the start. ${triedAgainInWords(facts)}`
}

function missingGroupsInWords(groups: readonly string[]): string {
  return `The task targets ${groupsInWords(groups)}, which ${groups.length === 1 ? 'does' : 'do'} not exist.`
}

function emptyGroupsInWords(groups: readonly string[]): string {
  return `The task targets ${groupsInWords(groups)}, which ${groups.length === 1 ? 'has' : 'have'} no nodes.`
}

function ownerLimitInWords({ queued, ownerLimit }: PendingFacts): string {
  const { owner, gpuCount } = queued.task.spec
  const { placedGpus = 0, maxGpus = 0 } = ownerLimit ?? {}
  const use = `the owner uses ${placedGpus} of ${maxGpus} GPUs, and this task needs ${gpuCount}`
  return `Waiting for another task of ${owner ?? 'its owner'} to end: ${use}.`
}

/**
 * When the next victim may leave these GPUs; if none ever will now, the task that stays.
 * @param servedBefore entries of the node's queue that victims leave for first
 */
export function nextVictimInWords(
  gpus: readonly Gpu[],
  requester: Task,
  now: Instant,
  retryAt: Instant | null,
  servedBefore: number,
): string {
  const who = whoLeavesInWords(gpus, requester, now, retryAt)
  if (servedBefore === 0) return who
  const others = servedBefore === 1 ? 'Another task is' : `${servedBefore} other tasks are`
  return `${who} ${others} served first on that node.`
}

function whoLeavesInWords(
  gpus: readonly Gpu[],
  requester: Task,
  now: Instant,
  retryAt: Instant | null,
): string {
  if (retryAt !== null)
    return ` The next swap-out is possible in ${secondsUntil(retryAt, now)} at the earliest.`
  const holder = largestProtected(gpus, requester)
  if (holder === null) return ' No other task may be swapped out now.'
  return (
    ` ${holder.task.spec.name} (P0) uses ${inMib(holder.demandMib)} there and is swapped out only ` +
    'for P0 tasks.'
  )
}

/** The P0 task with the most VRAM that this requester may not swap out. */
function largestProtected(gpus: readonly Gpu[], requester: Task): Placement | null {
  if (requester.spec.priority === 0) return null
  let largest: Placement | null = null
  for (const gpu of gpus) {
    for (const placement of gpu.placements) {
      const isProtected =
        placement.task.spec.priority === 0 && placement.noswap === 0 && placement.residency === 'resident'
      if (isProtected && placement.demandMib > (largest?.demandMib ?? 0)) largest = placement
    }
  }
  return largest
}

function victimsInWords(
  tally: Tally,
  { queued, shape, now, servedBeforeOn }: PendingFacts,
  retryAt: Instant | null,
): string {
  const node = tally.nearest[0]?.node
  if (node === undefined) return nextVictimInWords([], queued.task, now, retryAt, 0)
  if (!node.gpus.every((gpu) => mayDisplace(gpu, shape.kind)))
    return ' Overcommit is off on that node: no task is swapped out for this task.'
  return nextVictimInWords(node.gpus, queued.task, now, retryAt, servedBeforeOn(node))
}

/** The VRAM that a pending task needs. */
export function needInWords({ vramMib, gpuCount }: TaskSpec): string {
  const what = vramMib === 0 ? 'all VRAM' : inMib(vramMib)
  return gpuCount === 1 ? `${what} on one GPU` : `${what} on each of ${gpuCount} GPUs on one node`
}

/** `the best of 4 nodes, a100-2,`, or the only one. */
function bestInWords({ nodeCount, nearest }: Tally): string {
  const name = nearest[0]?.node.name ?? 'none'
  return nodeCount === 1 ? name : `the best of ${nodeCount} nodes, ${name},`
}

function nodesInWords({ nodeCount, nearest }: Tally): string {
  return namesInWords(
    nearest.map(({ node }) => node.name),
    nodeCount,
  )
}

function groupsInWords(groups: readonly string[]): string {
  return `${groups.length === 1 ? 'group' : 'groups'} ${namesInWords(groups)}`
}

function hostMemoryInWords(tally: Tally, needs: string, best: string, have: string): string {
  const why =
    have === 'nothing'
      ? `on ${nodesInWords(tally)}, its GPUs together would need more host memory than is free`
      : `${best} can accept ${have} with the remaining host memory`
  return `Waiting for host memory for swap-outs: ${needs}; ${why}.`
}

function limitInWords(tally: Tally): string {
  const have = tally.nodeCount === 1 ? 'has reached its' : 'have reached their'
  return `Waiting for a task to end: ${nodesInWords(tally)} ${have} maximum number of tasks.`
}

function exclusiveInWords(tally: Tally, facts: PendingFacts): string {
  const { spec } = facts.queued.task
  if (spec.gpuMode === 'shared')
    return (
      `Waiting for an exclusive task to end: this task needs ${needInWords(spec)}; ` +
      `exclusive tasks occupy the GPUs of ${nodesInWords(tally)}.`
    )
  const [best] = tally.nearest
  const whole = spec.gpuCount === 1 ? 'a GPU' : `${spec.gpuCount} GPUs on one node`
  return (
    `Waiting for ${whole} without any other task: ${bestInWords(tally)} is closest, ` +
    `with ${inMib(best?.haveMib)} of ${inMib(best?.needMib)} unused.`
  )
}

function reservedInWords(tally: Tally, facts: PendingFacts, rest: string): string {
  return (
    `Waiting behind a task that has waited longer: this task needs ${needInWords(facts.queued.task.spec)}; ` +
    `apart from the VRAM reserved for ${holderInWords(tally, facts)}, ${rest}.`
  )
}

function holderInWords(tally: Tally, { queued }: PendingFacts): string {
  for (const gpu of tally.nearest[0]?.node.gpus ?? []) {
    for (const reservation of gpu.reservations)
      if (reservation.task !== queued.task) return reservation.task.spec.name
  }
  return 'another task'
}

function queuedInWords({ plan, policy, queuePosition }: PendingFacts): string {
  const ahead = (queuePosition ?? 1) - 1
  const fits = plan === null ? null : `The task fits on ${gpusInWords(plan.gpus)}`
  if (policy.strategy !== 'fifo' || ahead === 0)
    return `${fits === null ? 'The task' : `${fits} and`} is considered in the next scheduling cycle.`
  return (
    `${fits === null ? 'The task waits:' : `${fits}, but`} ${ahead} ` +
    `${ahead === 1 ? 'task is' : 'tasks are'} ahead of it, and its pool is served in strict order.`
  )
}
