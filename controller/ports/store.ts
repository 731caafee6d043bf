import type { EndCode } from '../model/end-reason.ts'
import type {
  DurationMs,
  Instant,
  Mib,
  TaskState,
  TaskIdentityKind,
  SwapMethod,
} from '../../protocol/units.ts'
import type { ConfigFields } from '../model/config.ts'
import type { Decision, DecisionKind } from '../model/decision.ts'
import type { Event, EventFilter } from '../model/event.ts'
import type { Group } from '../model/group.ts'
import type { Role } from '../model/role.ts'
import type { VictimClass } from '../model/victim-class.ts'
import type { AutoCordon, NodeStatus, QuarantinedAttempt } from '../model/node.ts'
import type { GivenUp, Node, Placement, Stopping, Task } from '../model/placement.ts'
import type { StartTrouble } from '../model/start-refusal.ts'
import type { RunPolicy, TaskSpec } from '../../protocol/task.ts'
import type { Term } from './leadership.ts'

/**
 * Fields that the record of a task has under the same name and with the same type. The others are renamed,
 * derived or not stored.
 */
export const STORED_TASK = [
  'state',
  'isHeld',
  'attempt',
  'pendingSince',
  'firstStartedAt',
  'finishedAt',
  'exitCode',
  'endReason',
  'swapOuts',
] as const satisfies readonly (keyof Task)[]

/** The same of a placement. */
export const STORED_PLACEMENT = [
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
] as const satisfies readonly (keyof Placement)[]

/**
 * A task as the store keeps it: flat, JSON values only. Instants are milliseconds since the Unix epoch
 * (live).
 */
export interface TaskRecord
  extends Omit<TaskSpec, 'maxRequeues'>, RunPolicy, Pick<Task, (typeof STORED_TASK)[number]> {
  /** Absent while it has not ended, and in older records. */
  readonly endCode?: EndCode | null
  /** The node of its last attempt; null if it was never placed. Absent in older records of ended tasks. */
  readonly lastNodeId?: string | null
  /** Attempts whose result may still arrive (R8). Absent: none. */
  readonly givenUp?: readonly GivenUp[]
  /** The five counters of semantics 6, microseconds, as of the last transition. */
  readonly counters: readonly [demand: number, served: number, queue: number, swap: number, compute: number]
  /** For a lease: whether its client wants the GPU, as last reported. */
  readonly clientWants: boolean | null
  /** Failed starts; omitted: none. */
  readonly trouble?: StartTrouble
  /** Digest of the image that its first attempt ran; omitted: not known. */
  readonly imageDigest?: string
  /** Number of its latest event: the cause of what follows. */
  readonly lastEventSeq: number | null
  readonly placement: PlacementRecord | null
}

export interface PlacementRecord extends Pick<Placement, (typeof STORED_PLACEMENT)[number]> {
  readonly nodeId: string
  readonly gpus: readonly number[]
  /** An allocation that its server holds back and that is not granted yet. */
  readonly heldGrowth: { readonly mib: Mib; readonly askedAt: Instant } | null
  /** A stop was ordered: the task's next state once the node has ended it. */
  readonly stopping: Stopping | null
  /** The message that confirmed the start: the node's boot counter and the message's number in it (R6). */
  readonly confirmed: { readonly bootCounter: number; readonly seq: number } | null
  /** The server has lost its state since (R6). */
  readonly isInDoubt: boolean
  /** The node may not know the noswap value yet. */
  readonly isNoswapUntold: boolean
  /** An operator requested its return. */
  readonly isCalledBack: boolean
  /** Its probe requests its return. Absent in older records: false. */
  readonly isProbed?: boolean
  /** It is swapped out, and its server reports requests for it. Absent: false. */
  readonly isWakeable?: boolean
  /** What it keeps in VRAM on each GPU while it is out. Absent: nothing. */
  readonly residualMib?: Mib
  /** How it was swapped out. Absent: not said, or not out. */
  readonly outBy?: SwapMethod
  /** Why its server cannot swap it. Absent: it can, or did not say. */
  readonly whyNotSwappable?: string
  /** An operator swapped it out, and nothing has requested its return since. Absent: false. */
  readonly isSentAway?: boolean
  /** Its current or last return was not requested. Absent: false. */
  readonly isEager?: boolean
  /** The earliest instant from which it counts as idle. Absent: `residentSince`. */
  readonly idleFrom?: Instant
  /**
   * Since when it is swapped out; null while it is not. Absent in older records: since the restart, if it is.
   */
  readonly outSince?: Instant | null
  /**
   * Since when it requests its return; null while it does not. Absent in older records: since the restart.
   */
  readonly askedAt?: Instant | null
  /** After a failed swap it is not a victim before this instant. Absent in older records: 0. */
  readonly backOffUntil?: Instant
  /**
   * Per GPU, same order: its mark in that GPU's round (swap/rounds.ts); null if it was never a victim there.
   */
  readonly marks: readonly ({ readonly round: number; readonly lastSwapOut: number | null } | null)[]
}

export interface GpuRecord {
  readonly index: number
  readonly model: string
  readonly physicalMib: Mib
  readonly foreignMib: Mib
  readonly roundNonP0: number
  readonly roundP0: number
  /** Rounds of tasks that are kept warm; absent: 0. */
  readonly roundNonP0Warm?: number
  readonly roundP0Warm?: number
  /** Marks of tasks that the store does not place, and that the node may report. Absent: none. */
  readonly marks?: readonly TaskMark[]
}

/** As `marks` of a placement, with its task and class. */
export interface TaskMark {
  readonly taskId: string
  readonly class: VictimClass
  readonly round: number
  readonly lastSwapOut: number
}

/** The same of a node. */
type StoredOfNode =
  | 'id'
  | 'name'
  | 'address'
  | 'ordinal'
  | 'isCordoned'
  | 'drain'
  | 'overcommitOverride'
  | 'reserveOverrideMib'
  | 'device'
  | 'signalsWanted'
  | 'allowExec'
  | 'hostSwapMib'
  | 'registeredAt'
  | 'lastSeenAt'

export interface NodeRecord extends Pick<Node, StoredOfNode> {
  /** Omitted: the controller has not closed it. */
  readonly autoCordon?: AutoCordon | null
  /** Omitted: none. */
  readonly features?: readonly string[]
  /** Null or omitted: not declared. */
  readonly taskIdentity?: TaskIdentityKind | null
  /** Omitted: not declared. */
  readonly maxAttempts?: number
  /** Null or omitted: not declared. */
  readonly hostLinkMibPerS?: number | null
  /** The highest boot received from it (R6). */
  readonly bootCounter: number
  readonly bootRandom: string
  /** The longest run lease that it may hold (R5). */
  readonly leaseMs: DurationMs
  /** A sender with its identity was told to start a new boot since (R6). */
  readonly wasReset: boolean
  /** As of its last change. Absent in older records: up. */
  readonly status?: NodeStatus
  /** Attempts that run there and that the store does not know. Absent: none. */
  readonly quarantine?: readonly QuarantinedAttempt[]
  readonly gpus: readonly GpuRecord[]
}

/** Maximum number of revisions of the configuration that a store keeps, the newest. */
export const MAX_CONFIG_REVISIONS = 10_000

/** One persisted configuration; the highest revision is the live one. */
export interface ConfigRecord {
  readonly revision: number
  readonly at: Instant
  readonly author: string | null
  readonly fields: ConfigFields
}

/** A bearer token. Only its holder knows the secret. */
export interface TokenRecord {
  readonly id: string
  /** Owner of the tasks it submits, author of the changes it makes; several tokens may share it. */
  readonly name: string
  readonly role: Role
  /** SHA-256 of the secret, 64 hexadecimal digits. */
  readonly secretHash: string
  readonly createdAt: Instant
  readonly createdBy: string | null
  readonly expiresAt: Instant | null
  /** Rounded to the hour. */
  readonly lastUsedAt: Instant | null
  /**
   * For a browser session, whose secret is in a cookie: the sign-in settings under which it began. Absent: a
   * token.
   */
  readonly session?: string
}

/** Begins the id of a browser session; no token has such an id. */
export const SESSION_ID_PREFIX = 'session-'

/**
 * Entries of each kind are retained separately: submissions and refusals do not displace changes of settings
 * and rights.
 */
export type AuditKind = 'control' | 'work' | 'refusal'

/** A request, its caller, and whether it was accepted. */
export interface AuditRecord {
  readonly seq: number
  readonly at: Instant
  readonly kind: AuditKind
  /** Name of the token; null without one. For a message: the node or client that it names. */
  readonly actor: string | null
  readonly role: Role | null
  readonly tokenId: string | null
  readonly address: string | null
  readonly requestId: string | null
  /** The operation of the REST API, or `message`. */
  readonly action: string
  /** Method and path, without a query. */
  readonly target: string
  /** `failed`: it was accepted, and the controller could not carry it out. */
  readonly outcome: 'accepted' | 'refused' | 'failed'
  /** Status and code of a request that was not accepted. */
  readonly status: number | null
  readonly code: string | null
  /** Number of refusals from the same source omitted before this one. */
  readonly leftOut: number
}

/** A value that tasks of its owner may use as an environment variable. */
export interface SecretRecord {
  /** Name of the token that set it; null without tokens. */
  readonly owner: string | null
  readonly name: string
  /** The value, encrypted for this controller (port Sealer). */
  readonly sealed: string
  readonly updatedAt: Instant
}

/** Identifies a secret among those of all owners. */
export function secretId({ owner, name }: Pick<SecretRecord, 'owner' | 'name'>): string {
  return JSON.stringify([owner, name])
}

/** Access rights, secrets and the audit trail. */
export interface AccessRecords {
  readonly tokens: readonly TokenRecord[]
  readonly revokedTokenIds: readonly string[]
  /** A secret replaces an earlier one of its owner with the same name. */
  readonly secrets: readonly SecretRecord[]
  readonly deletedSecrets: readonly Pick<SecretRecord, 'owner' | 'name'>[]
  /** An entry replaces an earlier one with the same seq. */
  readonly audits: readonly AuditRecord[]
}

/** The same while a transaction collects them. */
export type AccessChanges = { -readonly [K in keyof AccessRecords]: AccessRecords[K][number][] }

export function noAccessChanges(): AccessChanges {
  return { tokens: [], revokedTokenIds: [], secrets: [], deletedSecrets: [], audits: [] }
}

/** A submission with an idempotency key. Key and body are digests: neither text is kept. */
export interface SubmissionKeyRecord {
  /** Number of the task. */
  readonly seq: number
  /** Digest of the key and its owner. */
  readonly key: string
  readonly body: string
  readonly taskId: string
  readonly at: Instant
}

/** Added keys, and the range of all keys that are kept: from `keptFromSeq` on. */
export interface SubmissionKeyRecords {
  readonly added: readonly SubmissionKeyRecord[]
  readonly keptFromSeq: number
}

/** Counters that must never decrease after a restart. */
export interface Marks {
  readonly epoch: number
  readonly nextTaskSeq: number
  readonly nextEventSeq: number
  readonly nextDecision: number
}

/**
 * The extent of a store's history. It is also kept outside the store (a file, the GPU servers), so that a
 * store that went back to an earlier state is detected (docs/decisions/0079).
 */
export interface StoreMark {
  /** Epoch of the controller that wrote last. */
  readonly epoch: number
  /** Sequence number of the last event; 0 before the first. */
  readonly eventSeq: number
  /** Hash of the chain of events up to that one: 64 hexadecimal digits, all 0 in a store without a chain. */
  readonly chain: string
}

/** Why the store lacks a part of its history. It stays until a batch ends it (`endsRecovery`). */
export interface RecoveryRecord {
  readonly reason: 'restored' | 'loss_accepted'
  /** Milliseconds since the Unix epoch. */
  readonly sinceWallMs: number
}

/** An epoch that wrote to this store. Its last event is the one before the first event of the next epoch. */
export interface EpochRecord {
  readonly epoch: number
  /** Sequence number that the first event of this epoch has, or would have had. */
  readonly firstEventSeq: number
  /** Id of the controller process that wrote it. Absent in older records: unknown. */
  readonly controller?: string
}

/** Maximum number of epochs that a store keeps, the newest. */
export const MAX_EPOCH_RECORDS = 1_000

/** Changes since the last commit: one transaction. Records replace earlier ones with the same id. */
export interface Batch {
  readonly tasks: readonly TaskRecord[]
  readonly nodes: readonly NodeRecord[]
  readonly forgottenNodeIds: readonly string[]
  readonly groups: readonly Group[]
  readonly deletedGroupIds: readonly string[]
  readonly config: ConfigRecord | null
  readonly events: readonly Event[]
  /** Empty unless the store keeps decisions. */
  readonly decisions: readonly Decision[]
  /** Null: no change. */
  readonly access: AccessRecords | null
  /** Null: none was added. */
  readonly submissionKeys: SubmissionKeyRecords | null
  /**
   * The store is complete again, or an administrator has ended the recovery: `recovery` is null from now on.
   */
  readonly endsRecovery: boolean
  /** Id of the controller process that writes. Omitted: unknown. */
  readonly controller?: string
  readonly marks: Marks
}

/** For a batch with a single change. */
export const NO_CHANGE: Omit<Batch, 'marks'> = {
  tasks: [],
  nodes: [],
  forgottenNodeIds: [],
  groups: [],
  deletedGroupIds: [],
  config: null,
  events: [],
  decisions: [],
  access: null,
  submissionKeys: null,
  endsRecovery: false,
}

/** Why this controller leads. */
export interface TermRecord extends Omit<Term, 'epoch'> {
  /** Name of the controller. */
  readonly controller: string
}

/**
 * The state that a controller starts from. Final tasks are not loaded: they are paged through
 * `finishedTasks`.
 */
export interface StoredState {
  /** The term that begins with this start. Omitted: the controller is alone. */
  readonly term?: TermRecord
  readonly openTasks: readonly TaskRecord[]
  readonly nodes: readonly NodeRecord[]
  readonly groups: readonly Group[]
  readonly config: ConfigRecord | null
  readonly tokens: readonly TokenRecord[]
  /** By owner and name. */
  readonly secrets: readonly SecretRecord[]
  readonly lastAuditSeq: number
  /** By seq. */
  readonly submissionKeys: readonly SubmissionKeyRecord[]
  readonly marks: Marks
  readonly mark: StoreMark
  /** Null: the history is complete. */
  readonly recovery: RecoveryRecord | null
  /** By epoch, ascending; none before the first that this store recorded. */
  readonly epochs: readonly EpochRecord[]
  readonly finishedCounts: Readonly<Record<'completed' | 'failed' | 'cancelled' | 'lost', number>>
}

/** The engine takes the epoch after the last one: that of the term. @param controller its name */
export function inTerm(state: StoredState, { epoch, reason, before }: Term, controller: string): StoredState {
  const marks = { ...state.marks, epoch: Math.max(state.marks.epoch, epoch - 1) }
  return { ...state, marks, term: { controller, before, reason } }
}

/** Hash of a chain without events. */
export const EMPTY_CHAIN = '0'.repeat(64)

/** The history of a store before the first commit. */
export const NO_HISTORY: Pick<StoredState, 'mark' | 'recovery' | 'epochs'> = {
  mark: { epoch: 0, eventSeq: 0, chain: EMPTY_CHAIN },
  recovery: null,
  epochs: [],
}

/**
 * A page of final tasks, newest submission first by default; `beforeSeq` and `afterSeq` are exclusive, null
 * sets no bound.
 */
export interface FinishedQuery {
  readonly states: readonly TaskState[]
  readonly owner: string | null
  /** As `isFoundBy` in model/task.ts. */
  readonly nameContains: string | null
  /** The node of its last attempt. */
  readonly nodeId: string | null
  readonly beforeSeq: number | null
  readonly afterSeq: number | null
  readonly isOldestFirst: boolean
  readonly limit: number
}

/** A page of audit entries, newest first; `beforeSeq` is exclusive, null starts at the newest. */
export interface AuditQuery {
  readonly beforeSeq: number | null
  readonly actor: string | null
  readonly action: string | null
  readonly outcome: AuditRecord['outcome'] | null
  /** Part of the target. */
  readonly targetContains: string | null
  readonly since: Instant | null
  readonly until: Instant | null
  readonly limit: number
}

/** A page of events, oldest first by default. Both seqs are exclusive; null or omitted sets no bound. */
export interface EventQuery extends EventFilter {
  readonly afterSeq: number
  readonly beforeSeq?: number | null
  /**
   * From this instant on, and before that one. Found by binary search, which assumes ascending instants:
   * after a clock was set back between two starts, some events of that hour may be missed.
   */
  readonly fromAt?: Instant | null
  readonly untilAt?: Instant | null
  readonly isNewestFirst?: boolean
  readonly limit: number
}

/**
 * The range of events that are kept, from `firstSeq` on. Without events it is one more than `lastSeq`, the
 * last one ever.
 */
export interface EventRange {
  readonly firstSeq: number
  readonly lastSeq: number
}

/**
 * A page of decisions. `afterNumber`: oldest first, above it; otherwise newest first, below `beforeNumber`
 * (null: from the newest).
 */
export interface DecisionQuery {
  readonly afterNumber: number | null
  readonly beforeNumber: number | null
  /** Decisions about this task, or with it as a victim. */
  readonly taskId: string | null
  readonly nodeId: string | null
  readonly kind: DecisionKind | null
  readonly limit: number
}

/** Revisions of the configuration, newest first; `before` is exclusive, null starts at the newest. */
export interface RevisionQuery {
  readonly before: number | null
  readonly limit: number
}

/**
 * Durable state. One contract suite (test/contract/store.test.ts) runs against every implementation. Faults:
 * `load` and `commit` throw or reject with StoreFault; after a failed commit the store accepts nothing more
 * (R10).
 */
export interface Store {
  load(): Promise<StoredState>
  /** It keeps no tasks and nodes, so that no records of them are made (a simulation without crashes). */
  readonly isForgetful?: boolean
  /** It keeps decisions, a bounded number of them; otherwise the engine does not record them. */
  readonly keepsDecisions?: boolean
  /**
   * Makes the batch durable, atomically. `undefined`: it is durable already (memory store); a promise
   * resolves when it is. Batches become durable in the order of the calls.
   */
  commit(batch: Batch): Promise<void> | undefined
  /** Reads of data that is no longer in memory. */
  readonly reads: StoreReads
  close(): Promise<void>
}

export interface StoreReads {
  task(id: string): Promise<TaskRecord | null>
  finishedTasks(query: FinishedQuery): Promise<readonly TaskRecord[]>
  events(query: EventQuery): Promise<readonly Event[]>
  eventRange(): Promise<EventRange>
  audits(query: AuditQuery): Promise<readonly AuditRecord[]>
  decision(number: number): Promise<Decision | null>
  decisions(query: DecisionQuery): Promise<readonly Decision[]>
  configRevisions(query: RevisionQuery): Promise<readonly ConfigRecord[]>
}

/** The disk failed: full, I/O error, locked by another controller, corrupt. The message is one line. */
export class StoreFault extends Error {
  override readonly name = 'StoreFault'
}
