/**
 * Obstacles of a demand on each node of a pool. Every rule of `feasible.ts` is checked separately, so that a
 * node can have several reasons; a node without one takes the demand, apart from reservations and refusals.
 * One scan of the pool's GPUs, on demand only.
 */
import type { Mib, NoSwap } from '../../../protocol/units.ts'
import type { Gpu, Node } from '../../model/placement.ts'
import { WAIT_REASONS, type WaitReason } from './explain-reasons.ts'
import { addObstacle, type Tallies } from './explain-tally.ts'
import {
  capacityForSwappableMib,
  commitRoomMib,
  hasAttemptRoom,
  hostRoomMib,
  isClosed,
  isEmpty,
  kthLargest,
  largestEverMib,
  mayDisplace,
  missingFeature,
  type Required,
  NOTHING,
  reachMib,
} from '../../policy/placement/feasible.ts'
import type { Shape } from '../../policy/placement/shape.ts'

/** The properties of a task that decide where it fits; tasks with equal ones share a survey. */
export interface Request {
  readonly shape: Shape
  /** For an exclusive task: whether missing room is physical VRAM or room to return to. */
  readonly noswap: NoSwap
  /** d, at least 1. */
  readonly demandMib: Mib
  readonly maxTasksPerGpu: number
  /** It runs a command, which not every server allows. */
  readonly needsExec: boolean
  /** Features that a server must offer (`requiredFeatures`). */
  readonly features: readonly Required[]
}

export interface Survey {
  readonly nodeCount: number
  readonly tallies: Tallies
  /**
   * The latest among the nodes' first reasons: if nodes are excluded in the order of reasons, this reason
   * excludes the last ones. Null if none is excluded.
   */
  readonly latest: WaitReason | null
  /** Nodes without obstacles. */
  readonly passing: readonly Node[]
}

export function surveyPool(nodes: Iterable<Node>, request: Request): Survey {
  const survey = createSurveyor(request)
  const tallies: Tallies = new Map()
  const passing: Node[] = []
  let latest: WaitReason | null = null
  let nodeCount = 0
  for (const node of nodes) {
    nodeCount += 1
    const found = survey(node)
    let isFirst = true
    for (const { reason, haveMib, needMib, margin } of found) {
      addObstacle(tallies, reason, { node, haveMib, needMib, margin, isFirst })
      if (isFirst && reason !== latest && (latest === null || rankOf(reason) > rankOf(latest)))
        latest = reason
      isFirst = false
    }
    if (isFirst) passing.push(node)
  }
  return { nodeCount, tallies, latest, passing }
}

/** Position in the order of precedence. */
export function rankOf(reason: WaitReason): number {
  return WAIT_REASONS.indexOf(reason)
}

/**
 * Returns a function that lists the obstacles of a demand on a node, in order of precedence; empty if it is
 * admitted.
 */
export function createSurveyor(request: Request): (node: Node) => readonly Found[] {
  const rules = rulesFor(request)
  const scratch: Scratch = { roomsMib: rules.map(() => []), jointMib: [] }
  return (node) => obstaclesOn(node, request, rules, scratch)
}

export interface Found {
  readonly reason: WaitReason
  readonly haveMib: Mib | null
  readonly needMib: Mib | null
  readonly margin: number
}

/** One rule of admission as a number: the largest demand that it alone allows on a GPU. */
interface Rule {
  readonly reason: WaitReason
  readonly roomMib: (gpu: Gpu) => Mib
  readonly isAboutBytes: boolean
  /** If the sum over the node's GPUs would suffice, the reason is FRAGMENTED instead. */
  readonly isSummed: boolean
}

/** Figures of one node, by rule and GPU; the arrays are reused for the next node. */
interface Scratch {
  readonly roomsMib: readonly Mib[][]
  /** VRAM that all rules together permit on each GPU. */
  readonly jointMib: Mib[]
}

/**
 * In order of precedence. Victims, exclusive tasks and reservations are checked only if these rules leave
 * enough GPUs.
 */
function rulesFor({ shape, noswap, maxTasksPerGpu }: Request): readonly Rule[] {
  const rule = (reason: WaitReason, roomMib: Rule['roomMib'], isSummed = false): Rule => {
    return { reason, roomMib, isAboutBytes: true, isSummed }
  }
  const slots = (reason: WaitReason, hasOne: (gpu: Gpu) => boolean): Rule => {
    const roomMib = (gpu: Gpu) => (hasOne(gpu) ? Infinity : NOTHING)
    return { reason, roomMib, isAboutBytes: false, isSummed: false }
  }
  const whereItStays: WaitReason = noswap === 1 ? 'WAITING_PHYSICAL_VRAM' : 'NEVER_RESIDENT'
  const ofNode = slots('NODE_TASK_LIMIT', ({ node }) => hasAttemptRoom(node))
  if (shape.kind === 'exclusive') return [ofNode, rule(whereItStays, (gpu) => gpu.capacityMib)]
  const hasSlot = (gpu: Gpu) =>
    gpu.placements.length + gpu.quarantinedCount + gpu.pendingClaimants.length < maxTasksPerGpu
  const shared: readonly Rule[] = [
    slots('MAX_TASKS_PER_GPU', hasSlot),
    rule('SWAP_SPACE_EXHAUSTED', (gpu) => hostRoomMib(gpu, shape.kind)),
    ofNode,
  ]
  // The commit limit does not apply to noswap tasks.
  if (shape.kind === 'noswap')
    return [...shared, rule(whereItStays, capacityForSwappableMib), rule('WOULD_STRAND', strandedRoomMib)]
  return [...shared, rule('WAITING_VRAM', commitRoomMib, true), rule(whereItStays, capacityForSwappableMib)]
}

/** In order of precedence; empty if the node takes the demand, apart from reservations and refusals. */
function obstaclesOn(
  node: Node,
  request: Request,
  rules: readonly Rule[],
  scratch: Scratch,
): readonly Found[] {
  const never = neverThere(node, request)
  if (never.length > 0) return never
  if (node.status !== 'up') return [notAboutBytes('NODES_OFFLINE')]
  if (isClosed(node)) return [notAboutBytes('NODES_CORDONED')]
  if (request.needsExec && !node.allowExec) return [notAboutBytes('EXEC_NOT_ALLOWED')]
  if (missingFeature(request.features, node) !== null) return [notAboutBytes('FEATURE_MISSING')]
  lookAtGpus(node.gpus, rules, scratch)
  const fallen = fallenRules(node.gpus, request, rules, scratch)
  return fallen.length > 0 ? fallen : occupied(node.gpus, request, scratch)
}

/** Obstacles that remain on an empty node. */
function neverThere({ gpus }: Node, { shape, demandMib }: Request): readonly Found[] {
  const k = shape.gpuCount
  let suitable = 0
  for (const gpu of gpus) if (largestEverMib(gpu) >= demandMib) suitable += 1
  if (suitable >= k) return NONE
  const found: Found[] = []
  const most = Math.min(k, gpus.length)
  if (suitable < most) found.push(bytes('NEVER_FITS', kthLargest(gpus.map(largestEverMib), most), demandMib))
  if (gpus.length < k)
    found.push({ reason: 'EXCEEDS_NODE_GPU_COUNT', haveMib: null, needMib: null, margin: gpus.length })
  return found
}

function lookAtGpus(gpus: readonly Gpu[], rules: readonly Rule[], { roomsMib, jointMib }: Scratch): void {
  jointMib.length = gpus.length
  for (let at = 0; at < rules.length; at++) {
    const { roomMib } = rules[at] as Rule
    const rooms = roomsMib[at] as Mib[]
    rooms.length = gpus.length
    for (let i = 0; i < gpus.length; i++) {
      const mib = roomMib(gpus[i] as Gpu)
      rooms[i] = mib
      if (at === 0 || mib < (jointMib[i] as Mib)) jointMib[i] = mib
    }
  }
}

/** Rules that too few GPUs pass; FRAGMENTED if each rule could be met, but not on the same GPUs. */
function fallenRules(
  gpus: readonly Gpu[],
  { shape, demandMib }: Request,
  rules: readonly Rule[],
  scratch: Scratch,
): readonly Found[] {
  const jointMib = kthLargest(scratch.jointMib, shape.gpuCount)
  if (jointMib >= demandMib) return NONE
  const found: Found[] = []
  let isInPieces = false
  for (let at = 0; at < rules.length; at++) {
    const { reason, isAboutBytes, isSummed } = rules[at] as Rule
    const rooms = scratch.roomsMib[at] as Mib[]
    const roomMib = kthLargest(rooms, shape.gpuCount)
    if (roomMib >= demandMib) continue
    if (isSummed && gpus.length > 1 && sumOf(rooms) >= shape.gpuCount * demandMib) isInPieces = true
    else found.push(isAboutBytes ? bytes(reason, roomMib, demandMib) : notAboutBytes(reason))
  }
  if (isInPieces || found.length === 0) found.push(bytes('FRAGMENTED', jointMib, demandMib))
  return found
}

/**
 * The rules leave enough GPUs, but other tasks occupy them: as exclusive tasks, or with VRAM that may not
 * leave yet.
 */
function occupied(
  gpus: readonly Gpu[],
  { shape, demandMib }: Request,
  { jointMib }: Scratch,
): readonly Found[] {
  const k = shape.gpuCount
  const isExclusive = shape.kind === 'exclusive'
  const suitable = gpus.filter((_, i) => (jointMib[i] as Mib) >= demandMib)
  const open = suitable.filter((gpu) => (isExclusive ? isEmpty(gpu) : gpu.exclusiveTask === null))
  if (open.length < k)
    return [isExclusive ? nearestToEmpty(suitable, k) : bytes('WAITING_EXCLUSIVE_GPU', 0, demandMib)]
  if (isExclusive) return NONE
  const freeMib = kthLargest(
    open.map((gpu) => gpu.freeMib),
    k,
  )
  const physical = bytes('WAITING_PHYSICAL_VRAM', freeMib, demandMib)
  if (!open.every((gpu) => mayDisplace(gpu, shape.kind))) return freeMib >= demandMib ? NONE : [physical]
  const reachedMib = kthLargest(
    open.map((gpu) => reachMib(gpu, shape.kind, shape.isP0)),
    k,
  )
  if (reachedMib >= demandMib) return NONE
  const victims = bytes('NO_ELIGIBLE_VICTIM', reachedMib, demandMib)
  return shape.kind === 'swappable' ? [victims] : [physical, victims]
}

/**
 * An exclusive task needs a whole GPU: of the k GPUs with the least taken, what is left on the one with the
 * most taken.
 */
function nearestToEmpty(gpus: readonly Gpu[], k: number): Found {
  const takenMib = (gpu: Gpu) => gpu.noswapMib + gpu.swappableMib
  const nearest = gpus.toSorted((a, b) => takenMib(a) - takenMib(b) || a.index - b.index)[k - 1]
  return nearest === undefined
    ? notAboutBytes('WAITING_EXCLUSIVE_GPU')
    : bytes('WAITING_EXCLUSIVE_GPU', nearest.capacityMib - takenMib(nearest), nearest.capacityMib)
}

/** A noswap task must leave room for the largest swappable one to return. */
function strandedRoomMib(gpu: Gpu): Mib {
  return gpu.largestSwappableMib === 0 ? Infinity : capacityForSwappableMib(gpu) - gpu.largestSwappableMib
}

const NONE: readonly Found[] = []

function bytes(reason: WaitReason, haveMib: Mib, needMib: Mib): Found {
  return { reason, haveMib: Math.max(0, haveMib), needMib, margin: haveMib - needMib }
}

function notAboutBytes(reason: WaitReason): Found {
  return { reason, haveMib: null, needMib: null, margin: 0 }
}

function sumOf(roomsMib: readonly Mib[]): Mib {
  let sum = 0
  for (const mib of roomsMib) sum += Math.max(0, mib)
  return sum
}
