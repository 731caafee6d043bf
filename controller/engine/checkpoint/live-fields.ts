/**
 * Lists which fields of the live objects are plain values, captured as they are, and which are references,
 * captured as numbers. A field in neither list does not compile, so that none is forgotten.
 */
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, LiveTask } from '../../state/facts.ts'

export const TASK_FIELDS = [
  'spec',
  'state',
  'isHeld',
  'attempt',
  'pendingSince',
  'firstStartedAt',
  'finishedAt',
  'exitCode',
  'endCode',
  'endReason',
  'swapOuts',
  'queueClass',
  'isFeasible',
  'waitCountedFrom',
  'queueUs',
  'swapUs',
  'servedUs',
  'computeUs',
  'awayFrom',
  'clientWants',
  'trouble',
  'lastNodeId',
  'givenUp',
  'lastEventSeq',
  'isDirty',
] as const satisfies readonly (keyof LiveTask)[]
type TaskReference = 'placement' | 'placementEntry' | 'queue' | 'queueEntry' | 'refusedBy' | 'avoidedNow'

export const PLACEMENT_FIELDS = [
  'attempt',
  'demandMib',
  'noswap',
  'residency',
  'generation',
  'assignedAt',
  'startedAt',
  'wantsGpu',
  'wantsSince',
  'idleSince',
  'residentSince',
  'isEligible',
  'isOver',
  'backOffUntil',
  'submissionNumber',
  'servedUs',
  'computeUs',
  'isSharing',
  'swappedOutSince',
  'isProbed',
  'isSwapInRequested',
  'isSwappedOutByOperator',
  'isEager',
  'idleFrom',
  'stopping',
  'confirmed',
  'isInDoubt',
  'isNoswapUnacknowledged',
  'heldGrowth',
] as const satisfies readonly (keyof LivePlacement)[]
type PlacementReference = 'task' | 'node' | 'gpus' | 'leavesFor' | 'entry' | 'eligibilityTimerAt'

export const ENTRY_FIELDS = [
  'kind',
  'needMib',
  'askedAt',
  'hasReserved',
  'isCollector',
] as const satisfies readonly (keyof LiveEntry)[]
type EntryReference = 'task' | 'node' | 'gpus' | 'failedAttempt'

export const GPU_FIELDS = [
  'index',
  'model',
  'physicalMib',
  'overcommitPercent',
  'foreignMib',
  'reserveMib',
  'capacityMib',
  'limitMib',
  'noswapMib',
  'swappableMib',
  'freeMib',
  'quarantinedMib',
  'quarantinedCount',
  'largestSwappableMib',
  'noswapResidentMib',
  'swappableResidentMib',
  'movingOutMib',
  'eligibleMib',
  'eligibleP0Mib',
  'swaps',
  'ledgerVersion',
] as const satisfies readonly (keyof LiveGpu)[]
type GpuReference =
  | 'node'
  | 'placements'
  | 'pendingClaimants'
  | 'claimants'
  | 'reservations'
  | 'exclusiveTask'
  | 'rounds'
  | 'meter'
  | 'fairnessScopes'
  | 'isStale'
  | 'isLedgerStale'
  | 'figures'
  | 'indexes'

export const NODE_FIELDS = [
  'id',
  'name',
  'address',
  'status',
  'isCordoned',
  'autoCordon',
  'isCordonDenied',
  'hostRefusals',
  'drain',
  'groups',
  'overcommitOverride',
  'reserveOverrideMib',
  'device',
  'signalsWanted',
  'allowExec',
  'taskIdentity',
  'maxAttempts',
  'attemptCount',
  'otherAttempts',
  'hostSwapMib',
  'hostLinkMibPerS',
  'hostUsedMib',
  'hostPromisedMib',
  'quarantine',
  'unknown',
  'deferred',
  'registeredAt',
  'lastSeenAt',
  'ordinal',
  'boot',
  'snapshotSeq',
  'contact',
  'swaps',
  'isHostTight',
  'hasEntryReservations',
  'wakeAt',
  'isDirty',
] as const satisfies readonly (keyof LiveNode)[]
type NodeReference =
  | 'clockSample'
  | 'gpus'
  | 'queue'
  | 'collector'
  | 'rank'
  | 'pools'
  | 'isTouched'
  | 'entryReservations'
  | 'cancelDrain'
  | 'cancelTrial'
  | 'cancelWake'
  | 'cancelEager'

type Plain<T, Names extends readonly (keyof T)[], References extends keyof T> =
  Exclude<keyof T, Names[number] | References> extends never ? Pick<T, Names[number]> : never

export type TaskFields = Plain<LiveTask, typeof TASK_FIELDS, TaskReference>
export type PlacementFields = Plain<LivePlacement, typeof PLACEMENT_FIELDS, PlacementReference>
export type EntryFields = Plain<LiveEntry, typeof ENTRY_FIELDS, EntryReference>
export type GpuFields = Plain<LiveGpu, typeof GPU_FIELDS, GpuReference>
export type NodeFields = Plain<LiveNode, typeof NODE_FIELDS, NodeReference>

/** Returns the named fields, without copying their values. */
export function fieldsOf<T extends object, K extends keyof T>(of: T, names: readonly K[]): Pick<T, K> {
  const fields: Partial<Pick<T, K>> = {}
  for (const name of names) fields[name] = of[name]
  return fields as Pick<T, K>
}
