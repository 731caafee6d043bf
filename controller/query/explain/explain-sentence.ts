/**
 * Renders why a pending task waits as one sentence with the numbers, and phrases shared with other
 * explanations.
 */
import { gpusInWords, inMib, namesInWords, secondsUntil } from '../../model/words.ts'
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
    'Nodes are ahead of the store, which went back in time. Restore a newer store ' +
    '(see `headroom recovery status`).',
  RECOVERY:
    'The controller is recovering from a loss of data: no task is placed until every known node has ' +
    'reported (see `headroom recovery status`).',
  AWAITING_NODES:
    'The controller has just started: no task is placed until the nodes that were up have reported, ' +
    'for at most 15 s.',
} as const satisfies Partial<Record<WaitReason, string>>

export function sentenceOfPending(
  reason: WaitReason,
  tally: Tally,
  facts: PendingFacts,
  retryAt: Instant | null,
): string {
  const { spec } = facts.queued.task
  const needs = `needs ${needInWords(facts)}`
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
      return `Can never fit: ${needs}; ${best} offers ${have} (physical VRAM minus the reserve).`
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
      return (
        `Waits for a task to end: too few GPUs on ${nodesInWords(tally)} have fewer than ` +
        `max_tasks_per_gpu (${facts.policy.maxTasksPerGpu}) tasks.`
      )
    case 'NODE_TASK_LIMIT':
      return limitInWords(tally)
    case 'SWAP_SPACE_EXHAUSTED':
      return hostMemoryInWords(tally, needs, best, have)
    case 'WAITING_VRAM':
      return `Waits for VRAM: ${needs}; ${best} has ${have} of commit room left.`
    case 'WAITING_PHYSICAL_VRAM':
      return (
        `Waits for physical VRAM: ${needs} for a noswap task; ` +
        `${best} has ${have} free.${victimsInWords(tally, facts, retryAt)}`
      )
    case 'NEVER_RESIDENT':
      return `Waits for noswap tasks or foreign processes to free VRAM: ${needs}; ${best} can offer ${have}.`
    case 'WOULD_STRAND':
      return `Waits so that placed tasks can return: ${needs} for a noswap task; ${best} can spare ${have}.`
    case 'FRAGMENTED':
      return (
        `Waits for unfragmented VRAM: ${needs}; ${best} has enough in total, ` +
        `but no more than ${have} ${spec.gpuCount === 1 ? 'on one GPU' : `on each of ${spec.gpuCount} GPUs`}.`
      )
    case 'WAITING_EXCLUSIVE_GPU':
      return exclusiveInWords(tally, facts)
    case 'NO_ELIGIBLE_VICTIM':
      return (
        `Waits for a victim: ${needs}; ${best} has ${have} free or used by tasks that may be swapped ` +
        `out.${victimsInWords(tally, facts, retryAt)}`
      )
    case 'AWAITING_NODE_ACK':
      return (
        `Refused by ${nodesInWords(tally)}; the task can be placed there again after the next report, or ` +
        'when another task ends there.'
      )
    case 'RESERVED_FOR_ANOTHER':
      return (
        `Waits behind a task that has waited longer: ${needs}; ` +
        `apart from the VRAM reserved for ${holderInWords(tally, facts)}, ${best} has ${have}.`
      )
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
      return `Waits for the announced result of an earlier attempt. ${triedAgainInWords(facts)}`
    case 'RESIDENCY_IMPOSSIBLE':
    case 'SWAPPING_OUT_FOR_YOU':
      throw new Error(`broken invariant: ${reason} is not a reason of a pending task without reserved VRAM`)
  }
}

function closedInWords(tally: Tally, how: string): string {
  const are = tally.nodeCount === 1 ? 'is' : 'are'
  return `Waits for a node: ${nodesInWords(tally)} would fit, but ${are} ${how}.`
}

function preparingInWords(tally: Tally, { queued: { task } }: PendingFacts): string {
  const current = task.preparations.find(({ state }) => state !== 'prepared')
  const needs = whatIsPrepared(task.spec)
  if (current === undefined) {
    const prepare = tally.nodeCount === 1 ? 'already prepares' : 'already prepare'
    return `Waits to be prepared (${needs}): ${nodesInWords(tally)} ${prepare} the maximum number of tasks.`
  }
  const { nodeName, bytesDone, bytesTotal } = current
  const mib = (bytes: number) => inMib(Math.ceil(bytes / BYTES_OF_MIB))
  const bytes = bytesTotal === null ? '' : `: ${mib(bytesDone)} of ${mib(bytesTotal)}`
  return `Being prepared on ${nodeName} (${needs})${bytes}. No VRAM is committed during preparation.`
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
  return `Could not be started. ${quoted.join('; ')}${rest}. ${again}`
}

function triedAgainInWords({ queued, now }: PendingFacts): string {
  const { pause, refusals } = queued.task.trouble
  // Without a pause: once the first node is eligible again.
  const at = pause?.until ?? Math.min(...refusals.map(({ until }) => until ?? Infinity))
  const inTime = at === Infinity ? 'later' : `in ${Math.max(1, Math.ceil((at - now) / 1000))} s`
  return (
    `The controller tries again ${inTime}, or earlier if the task is released or changed, ` +
    'or if a node joins or is uncordoned.'
  )
}

function noNodesInWords(groups: readonly string[]): string {
  const those = groups.length === 0 ? 'outside the groups' : `of ${groupsInWords(groups)}`
  return `Waits for a node: no node ${those} has registered.`
}

function tooFewGpusInWords({ nearest }: Tally, gpuCount: number, best: string): string {
  return `Can never fit: needs ${gpuCount} GPUs on one node; ${best} has ${nearest[0]?.margin ?? 0}.`
}

function leasesOnlyInWords(tally: Tally): string {
  const accept = tally.nodeCount === 1 ? 'accepts' : 'accept'
  const itsServer = tally.nodeCount === 1 ? 'its server' : 'their servers'
  return (
    `Waits for a node that runs commands: ${nodesInWords(tally)} would fit, but ${accept} only leases. ` +
    `To allow commands, start ${itsServer} with \`headroom gpu-server --allow-exec\`.`
  )
}

/** What each feature gives to a task, in words. */
const FEATURE_WORDS: Readonly<Record<Feature, string>> = {
  image: 'container images',
  files: 'files of the task',
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
  return isMount(feature) ? `the data folder ${feature.slice('mount:'.length)}` : FEATURE_WORDS[feature]
}

function isMount(feature: Required): feature is MountFeature {
  return feature.startsWith('mount:')
}

function featureInWords(tally: Tally, spec: Task['spec']): string {
  const node = tally.nearest[0]?.node
  const missing = node === undefined ? null : missingFeature(requiredFeatures(spec), node)
  const offers = missing === null ? 'what it requires' : `${featureWords(missing)} (feature ${missing})`
  const dont = tally.nodeCount === 1 ? 'does' : 'do'
  return `Waits for a node that offers ${offers}: ${nodesInWords(tally)} would fit, but ${dont} not offer it.`
}

function requeueDelayInWords(facts: PendingFacts): string {
  const { earlyEnds } = facts.queued.task.trouble
  const attempts = earlyEnds === 1 ? 'One attempt' : `${earlyEnds} attempts`
  return `${attempts} of this task ended soon after the start. ${triedAgainInWords(facts)}`
}

function missingGroupsInWords(groups: readonly string[]): string {
  return `Targets ${groupsInWords(groups)}, which ${groups.length === 1 ? 'does' : 'do'} not exist.`
}

function emptyGroupsInWords(groups: readonly string[]): string {
  return `Targets ${groupsInWords(groups)}, which ${groups.length === 1 ? 'has' : 'have'} no nodes.`
}

function ownerLimitInWords({ queued, ownerLimit }: PendingFacts): string {
  const { owner, gpuCount } = queued.task.spec
  const { placedGpus = 0, maxGpus = 0 } = ownerLimit ?? {}
  const use = `the owner uses ${placedGpus} of ${maxGpus} GPUs, and this task needs ${gpuCount}`
  return `Waits for another task of ${owner ?? 'its owner'} to end: ${use}.`
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
  if (retryAt !== null) return ` The earliest next swap-out is possible in ${secondsUntil(retryAt, now)}.`
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

function needInWords({ queued }: PendingFacts): string {
  const { vramMib, gpuCount } = queued.task.spec
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
      ? `all its GPUs on ${nodesInWords(tally)} together would need more host memory than is free`
      : `with the remaining host memory, ${best} can accept ${have}`
  return `Waits for host memory for swap-outs: ${needs}; ${why}.`
}

function limitInWords(tally: Tally): string {
  const have = tally.nodeCount === 1 ? 'has reached its' : 'have reached their'
  return `Waits for a task to end: ${nodesInWords(tally)} ${have} maximum number of tasks.`
}

function exclusiveInWords(tally: Tally, facts: PendingFacts): string {
  const { gpuMode, gpuCount } = facts.queued.task.spec
  if (gpuMode === 'shared')
    return (
      `Waits for an exclusive task to end: needs ${needInWords(facts)}; ` +
      `exclusive tasks occupy the GPUs of ${nodesInWords(tally)}.`
    )
  const [best] = tally.nearest
  const whole = gpuCount === 1 ? 'a GPU' : `${gpuCount} GPUs on one node`
  return (
    `Waits for ${whole} without any other task: ${bestInWords(tally)} is closest, ` +
    `with ${inMib(best?.haveMib)} of ${inMib(best?.needMib)} unused.`
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
  const fits = plan === null ? 'Waits' : `Fits on ${gpusInWords(plan.gpus)}`
  if (policy.strategy !== 'fifo' || ahead === 0) return `${fits}: the task is considered in the next cycle.`
  return (
    `${fits}${plan === null ? ':' : ', but'} ${ahead} ${ahead === 1 ? 'task is' : 'tasks are'} ahead of ` +
    'it, and its pool is served in strict order.'
  )
}
