/** New tasks, placements and GPUs, as the engine keeps them. */
import type { Instant, Mib } from '../../protocol/units.ts'
import type { TaskSpec } from '../../protocol/task.ts'
import { newGpuMeter } from '../metrics/meter.ts'
import { NO_PREPARATIONS } from '../model/preparation.ts'
import { NO_TROUBLE } from '../model/start-refusal.ts'
import { fairnessScopesOf, newGpuRounds } from '../policy/swap/rounds.ts'
import type { GivenUp } from '../model/placement.ts'
import type { LiveGpu, LiveNode, LivePlacement, LiveTask, SwapTotals } from './facts.ts'

/** Shared by most of the tasks, to save memory. */
const NONE_GIVEN_UP: readonly GivenUp[] = []

export function newLiveTask(spec: TaskSpec, now: Instant): LiveTask {
  return {
    spec,
    state: 'pending',
    isHeld: false,
    attempt: 0,
    pendingSince: now,
    placement: null,
    placementEntry: null,
    refusedBy: null,
    trouble: NO_TROUBLE,
    preparations: NO_PREPARATIONS,
    imageDigest: null,
    avoidedNow: null,
    firstStartedAt: null,
    finishedAt: null,
    exitCode: null,
    endCode: null,
    endReason: null,
    swapOuts: 0,
    queue: null,
    queueEntry: null,
    queueClass: spec.priority,
    isFeasible: false,
    waitCountedFrom: null,
    queueUs: 0,
    swapUs: 0,
    servedUs: 0,
    computeUs: 0,
    awayFrom: null,
    clientWants: null,
    lastNodeId: null,
    givenUp: NONE_GIVEN_UP,
    lastEventSeq: null,
    isDirty: false,
  }
}

export function newLivePlacement(
  task: LiveTask,
  gpus: readonly LiveGpu[],
  demandMib: Mib,
  now: Instant,
): LivePlacement {
  return {
    // First what the choice of victims reads, then what every report of use reads: together in memory.
    task,
    gpus,
    isEligible: false,
    demandMib,
    residualMib: 0,
    wantsGpu: false,
    idleSince: now,
    node: (gpus[0] as LiveGpu).node,
    attempt: task.attempt,
    residency: 'none',
    noswap: task.spec.noswap,
    isSharing: false,
    startedAt: null,
    isOver: false,
    stopping: null,
    eligibilityTimerAt: null,
    wantsSince: now,
    idleFrom: now,
    backOffUntil: 0,
    generation: 0,
    assignedAt: now,
    residentSince: now,
    leavesFor: null,
    entry: null,
    submissionNumber: task.spec.seq,
    servedUs: 0,
    computeUs: 0,
    swappedOutSince: null,
    movingSince: null,
    isProbed: false,
    isWakeable: false,
    outBy: null,
    whyNotSwappable: null,
    isSwapInRequested: false,
    isSwappedOutByOperator: false,
    isEager: false,
    confirmed: null,
    isInDoubt: false,
    isNoswapUnacknowledged: false,
    heldGrowth: null,
  }
}

export function newLiveGpu(
  node: LiveNode,
  index: number,
  model: string,
  physicalMib: Mib,
  foreignMib: Mib,
  now: Instant,
): LiveGpu {
  return {
    node,
    index,
    model,
    physicalMib,
    foreignMib,
    overcommitPercent: 0,
    reserveMib: 0,
    capacityMib: 0,
    limitMib: 0,
    noswapMib: 0,
    swappableMib: 0,
    freeMib: 0,
    largestSwappableMib: 0,
    noswapResidentMib: 0,
    swappableResidentMib: 0,
    movingOutMib: 0,
    eligibleMib: 0,
    eligibleP0Mib: 0,
    placements: [],
    eligible: [],
    quarantinedMib: 0,
    quarantinedCount: 0,
    pendingClaimants: [],
    claimants: [],
    reservations: [],
    exclusiveTask: null,
    rounds: newGpuRounds(),
    meter: newGpuMeter(now),
    swaps: newSwapTotals(),
    copyMs: 0,
    fairnessScopes: fairnessScopesOf(`${node.id}/${index}`),
    ledgerVersion: 0,
    isStale: false,
    isLedgerStale: false,
    figures: { roomMib: 0, noswapRoomMib: 0, placedMib: 0, everMib: -1 },
    indexes: [],
  }
}

export function newSwapTotals(): SwapTotals {
  return { swapOuts: 0, swapIns: 0, swappedOutMib: 0, swappedInMib: 0 }
}
