/**
 * The largest demand that a GPU admits. Every rule of semantics section 1 is monotone in the demand, so that
 * one number per GPU and kind of request suffices; `test/property/feasible.test.ts` compares it with `admit`.
 */
import type { TaskSpec } from '../../../protocol/task.ts'
import { hasHostLimits } from '../../../protocol/resource-limits.ts'
import { mountFeature, type Feature, type Mib, type MountFeature } from '../../../protocol/units.ts'
import { hasRefusedStart } from '../../model/start-refusal.ts'
import type { Task, Gpu, Node } from '../../model/placement.ts'
import { maySwapOutFor } from '../../model/vram.ts'
import { lacksPreparingRoom } from './prepare.ts'
import type { RequestKind } from './shape.ts'

/** No demand is admitted. */
export const NOTHING: Mib = -1

/** New tasks are placed only on nodes that are up and not closed. */
export function isPlaceable(node: Node): boolean {
  return node.status === 'up' && !isClosed(node)
}

/** An operator cordoned it, or the controller did and no trial start is due. */
export function isClosed({ isCordoned, autoCordon }: Node): boolean {
  return isCordoned || (autoCordon !== null && !autoCordon.isTrialOpen)
}

/** The largest demand that fits now, without a swap. */
export function largestNowMib(gpu: Gpu, kind: RequestKind, maxTasksPerGpu: number): Mib {
  if (!hasTaskSlot(gpu, maxTasksPerGpu)) return NOTHING
  if (kind === 'exclusive') return isEmpty(gpu) ? Math.min(gpu.freeMib, gpu.limitMib) : NOTHING
  return Math.min(ruleRoomMib(gpu, kind), gpu.freeMib)
}

/** The largest demand that fits once every eligible victim that a request of this class may take has left. */
export function largestAfterSwapMib(gpu: Gpu, kind: RequestKind, isP0: boolean, maxTasksPerGpu: number): Mib {
  if (!mayDisplace(gpu, kind)) return largestNowMib(gpu, kind, maxTasksPerGpu)
  const mib = largestButForBytesMib(gpu, kind, maxTasksPerGpu)
  return mib === NOTHING ? NOTHING : Math.min(mib, reachMib(gpu, kind, isP0))
}

/** The largest demand that lacks only VRAM held by swappable tasks, whether or not they are eligible now. */
export function largestButForBytesMib(gpu: Gpu, kind: RequestKind, maxTasksPerGpu: number): Mib {
  if (kind === 'exclusive' || !mayDisplace(gpu, kind) || !hasTaskSlot(gpu, maxTasksPerGpu)) return NOTHING
  return ruleRoomMib(gpu, kind)
}

/**
 * The largest demand that lacks only free VRAM, whether or not a swap could free it. An exclusive task needs
 * an empty GPU instead.
 */
export function largestButForVramMib(gpu: Gpu, kind: RequestKind, maxTasksPerGpu: number): Mib {
  return kind === 'exclusive' || !hasTaskSlot(gpu, maxTasksPerGpu) ? NOTHING : ruleRoomMib(gpu, kind)
}

/** Returns false for a noswap task where overcommit is off: nothing is swapped out for it. */
export function mayDisplace(gpu: Gpu, kind: RequestKind): boolean {
  return maySwapOutFor(kind === 'noswap' ? 1 : 0, gpu.overcommitPercent)
}

/**
 * The largest demand that every rule but free physical VRAM allows. Noswap tasks do not count towards the
 * commit limit (specification 2.3).
 */
function ruleRoomMib(gpu: Gpu, kind: RequestKind): Mib {
  const hostMib = hostRoomMib(gpu, kind)
  if (kind === 'noswap') return Math.min(strandRoomMib(gpu), hostMib)
  return Math.min(commitRoomMib(gpu), capacityForSwappableMib(gpu), hostMib)
}

/**
 * The shortfall of a waiting task on a GPU is its demand minus this figure (semantics 4, reservation). A
 * swappable task lacks commit room, an exclusive one everything that is placed. A noswap task has no commit
 * limit: it lacks room next to the largest swappable task and, where nothing is swapped out for it, free VRAM
 * (docs/decisions/0073).
 */
export function reservationRoomMib(gpu: Gpu, kind: RequestKind): Mib {
  switch (kind) {
    case 'swappable':
      return commitRoomMib(gpu)
    case 'noswap':
      return mayDisplace(gpu, kind) ? strandRoomMib(gpu) : Math.min(strandRoomMib(gpu), gpu.freeMib)
    case 'exclusive':
      return -(gpu.noswapMib + gpu.swappableMib)
  }
}

/** The largest demand this GPU could take if it were empty: P − R. */
export function largestEverMib(gpu: Gpu): Mib {
  return gpu.physicalMib - gpu.reserveMib
}

/**
 * Returns the demand that each of the node's best `gpuCount` GPUs could ever take; NOTHING if it has fewer.
 */
export function largestEverOn(node: Node, gpuCount: number): Mib {
  return kthLargest(node.gpus.map(largestEverMib), gpuCount)
}

/** Commit room: L − N − S. May be negative after a change of configuration. */
export function commitRoomMib(gpu: Gpu): Mib {
  return gpu.limitMib - gpu.noswapMib - gpu.swappableMib
}

/** C − N: what a swappable task can count on to return to. */
export function capacityForSwappableMib(gpu: Gpu): Mib {
  return gpu.capacityMib - gpu.noswapMib
}

/** Free VRAM for a new request in the end: the d at which short(e) equals the VRAM of eligible victims. */
export function reachMib(gpu: Gpu, kind: RequestKind, isP0: boolean): Mib {
  if (!mayDisplace(gpu, kind)) return afterMovesMib(gpu)
  return afterMovesMib(gpu) + gpu.eligibleMib + (isP0 ? gpu.eligibleP0Mib : 0)
}

/**
 * C − N − S_res + everything moving out − Σ H_o: free VRAM for a new request when all that moves has left.
 */
export function afterMovesMib(gpu: Gpu): Mib {
  let reservedMib = 0
  for (const claimant of gpu.claimants) reservedMib += claimant.needMib
  return gpu.capacityMib - gpu.noswapResidentMib - gpu.swappableResidentMib + gpu.movingOutMib - reservedMib
}

/** A noswap task must leave room for the largest swappable one to return. */
function strandRoomMib(gpu: Gpu): Mib {
  return capacityForSwappableMib(gpu) - gpu.largestSwappableMib
}

/**
 * A placement that lifts N + S above C needs host memory for all swappable tasks of the GPU at once, so that
 * two tasks can always change places. Below C none is needed.
 */
export function hostRoomMib(gpu: Gpu, kind: RequestKind): Mib {
  const belowCapacity = gpu.capacityMib - gpu.noswapMib - gpu.swappableMib
  const left = gpu.node.hostSwapMib - gpu.node.hostPromisedMib + hostPromiseMib(gpu) - gpu.swappableMib
  if (kind === 'swappable') return Math.max(belowCapacity, left)
  return left >= 0 ? Infinity : belowCapacity
}

/**
 * Returns true if host memory allows a placed task to grow by `byMib` on each of its GPUs. The promise is
 * counted as at admission, over all its GPUs (semantics 1). A growth without a new promise is free.
 */
export function hasHostRoomToGrow(gpus: readonly Gpu[], byMib: Mib, isNoswap: boolean): boolean {
  let moreMib = 0
  for (const gpu of gpus) {
    const swappableMib = gpu.swappableMib + (isNoswap ? 0 : byMib)
    const isOver = gpu.noswapMib + gpu.swappableMib + byMib > gpu.capacityMib
    moreMib += (isOver ? swappableMib : 0) - hostPromiseMib(gpu)
  }
  const node = gpus[0]?.node
  return node === undefined || moreMib <= 0 || node.hostPromisedMib + moreMib <= node.hostSwapMib
}

/** Host memory of the node promised to tasks of this GPU. */
export function hostPromiseMib(gpu: Gpu): Mib {
  return gpu.noswapMib + gpu.swappableMib > gpu.capacityMib ? gpu.swappableMib : 0
}

/**
 * Returns true if `max_tasks_per_gpu` and the server's attempt limit leave room, and no exclusive task
 * occupies the GPU.
 */
function hasTaskSlot(gpu: Gpu, maxTasksPerGpu: number): boolean {
  const { node } = gpu
  if (!isPlaceable(node) || !hasAttemptRoom(node) || gpu.exclusiveTask !== null) return false
  return gpu.placements.length + gpu.quarantinedCount + gpu.pendingClaimants.length < maxTasksPerGpu
}

/** The server can hold one more attempt (NODE_TASK_LIMIT). */
export function hasAttemptRoom({ attemptCount, maxAttempts }: Node): boolean {
  return attemptCount < maxAttempts
}

/** At the limit or one below it: the next attempt gives or takes room on all GPUs of the node. */
export function isNearAttemptLimit({ attemptCount, maxAttempts }: Node): boolean {
  return attemptCount >= maxAttempts - 1
}

export function isEmpty(gpu: Gpu): boolean {
  return gpu.placements.length === 0 && gpu.quarantinedCount === 0 && gpu.pendingClaimants.length === 0
}

/** A server that runs no commands takes leases only; one without a feature takes no task that requires it. */
export function mayRunOn(task: Task, node: Node): boolean {
  return (
    (node.allowExec || task.spec.command === null) &&
    missingFeature(requiredFeatures(task.spec), node) === null
  )
}

/**
 * Returns what a server must name in its hello to run the task. A server ignores fields that it does not
 * know, so it would run a task with an image on the host itself, and without its variables, files and limits.
 */
export function requiredFeatures({
  image = null,
  limits = null,
  environment = null,
  workdir = null,
  cwd = null,
  mounts = [],
  swapMethod = null,
}: Pick<TaskSpec, RequiringField>): readonly Required[] {
  const hasFiles = workdir !== null || cwd !== null
  const needs = [
    image !== null,
    environment !== null,
    hasFiles,
    limits !== null && hasHostLimits(limits),
    swapMethod === 'hooks',
    swapMethod === 'engine',
    (limits?.vramMib ?? null) !== null,
  ]
  let index = 0
  for (let bit = 0; bit < needs.length; bit++) if (needs[bit] === true) index |= 1 << bit
  const features = COMBINATIONS[index] as readonly Feature[]
  return mounts.length === 0 ? features : [...features, ...mounts.map(mountFeature)]
}

/** A requirement of a task for its server. */
export type Required = Feature | MountFeature

type RequiringField = 'image' | 'environment' | 'limits' | 'workdir' | 'cwd' | 'mounts' | 'swapMethod'
const IN_ORDER = [
  'image',
  'env',
  'files',
  'limits',
  'swap_hooks',
  'swap_engine',
  'vram_limit',
] as const satisfies readonly Feature[]
/** Bit i of the index: the feature at place i is required. */
const COMBINATIONS: readonly (readonly Feature[])[] = Array.from(
  { length: 1 << IN_ORDER.length },
  (_, bits) => IN_ORDER.filter((_feature, place) => (bits & (1 << place)) !== 0),
)

/** Returns the first of these features that the server does not name; null: it names all. */
export function missingFeature(required: readonly Required[], { features }: Node): Required | null {
  for (const feature of required) {
    const isOffered =
      features.includes(feature) || (feature.startsWith('mount:') && features.includes('mounts'))
    if (!isOffered) return feature
  }
  return null
}

/**
 * A node that refused the task is excluded until a later snapshot (R3), or longer (safety 3); one that may
 * not run it always is.
 */
export function isClosedTo(task: Task, node: Node): boolean {
  return (
    !mayRunOn(task, node) || (task.refusedBy?.has(node.id) ?? false) || hasRefusedStart(task.trouble, node.id)
  )
}

/**
 * As `isClosedTo`, and nodes avoided for the rest of the cycle or without room to prepare it: the task waits
 * there, and may reserve or collect VRAM.
 */
export function isRefusedBy(task: Task, node: Node): boolean {
  return isClosedTo(task, node) || (task.avoidedNow?.has(node) ?? false) || lacksPreparingRoom(task, node)
}

/** Returns the value that each of the best k has at least; NOTHING if there are fewer, or k is 0. */
export function kthLargest(mibs: readonly Mib[], k: number): Mib {
  if (k < 1 || mibs.length < k) return NOTHING
  if (k === 1) return largestOf(mibs)
  // The best k so far, descending: k is small, and most values are not among them.
  const best: Mib[] = []
  for (const mib of mibs) {
    if (best.length === k && mib <= (best[k - 1] as Mib)) continue
    let at = best.length === k ? k - 1 : best.length
    for (; at > 0 && (best[at - 1] as Mib) < mib; at--) best[at] = best[at - 1] as Mib
    best[at] = mib
  }
  return best[k - 1] as Mib
}

function largestOf(mibs: readonly Mib[]): Mib {
  let largest = -Infinity
  for (const mib of mibs) if (mib > largest) largest = mib
  return largest
}
