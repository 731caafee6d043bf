/**
 * The store of a simulation: it commits at once and keeps references. A simulated controller that crashes
 * starts again from the same store with `load`, so `close` does nothing here.
 */
import { isDecisionWanted } from './decision-pick.ts'
import { byCodeUnits, firstDifference } from '../structures/order.ts'
import { isEventWanted, type Event } from '../model/event.ts'
import type { Decision } from '../model/decision.ts'
import type { Group } from '../model/group.ts'
import { isFinal, isFoundBy, type FinalState } from '../model/task.ts'
import {
  EMPTY_CHAIN,
  MAX_CONFIG_REVISIONS,
  MAX_EPOCH_RECORDS,
  NO_HISTORY,
  secretId,
  StoreFault,
  type AccessRecords,
  type AuditQuery,
  type AuditRecord,
  type Batch,
  type ConfigRecord,
  type DecisionQuery,
  type EpochRecord,
  type EventQuery,
  type EventRange,
  type FinishedQuery,
  type NodeRecord,
  type RecoveryRecord,
  type Store,
  type StoredState,
  type StoreReads,
  type SubmissionKeyRecord,
  type SubmissionKeyRecords,
  type TaskRecord,
  type TokenRecord,
  type SecretRecord,
} from '../ports/store.ts'

export interface MemoryStoreOptions {
  /**
   * Keeps final tasks, so that `reads` find them (default true). Otherwise they are only counted, each at its
   * one final commit.
   */
  readonly retainFinished?: boolean
  /** Number of events kept, the newest (default 10,000; 0 keeps none). */
  readonly retainEvents?: number
  /** Number of decisions kept, the newest (default 0: decisions are not recorded). */
  readonly retainDecisions?: number
  /**
   * Needs no records of tasks and nodes: for simulations that never restart the controller (default false).
   */
  readonly isForgetful?: boolean
  /** The state before the first commit (default: empty). */
  readonly initial?: StoredState
  /** Final tasks that `initial` counts, to be kept from the start (default: none). */
  readonly initialFinished?: readonly TaskRecord[]
}

const RETAIN_EVENTS = 10_000
/** Maximum number of records, of all kinds together. */
const RETAIN_AUDITS = 10_000

/** An empty store: numbers begin at 1, and no controller has had an epoch. */
export const EMPTY_STATE: StoredState = {
  openTasks: [],
  nodes: [],
  groups: [],
  config: null,
  tokens: [],
  secrets: [],
  submissionKeys: [],
  lastAuditSeq: 0,
  marks: { epoch: 0, nextTaskSeq: 1, nextEventSeq: 1, nextDecision: 1 },
  ...NO_HISTORY,
  finishedCounts: { completed: 0, failed: 0, cancelled: 0, lost: 0 },
}

/**
 * A store in memory. `commit` is synchronous and returns undefined; it keeps the records it is given, which
 * must not change afterwards. Its only fault: a batch of an earlier epoch than one already committed is
 * refused whole (R2); the later epoch continues.
 */
export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const held = hold(options)
  return {
    isForgetful: options.isForgetful ?? false,
    keepsDecisions: (options.retainDecisions ?? 0) > 0,
    load: () => Promise.resolve(stateOf(held)),
    commit: (batch) => commit(held, batch),
    reads: readsOf(held),
    close: () => Promise.resolve(),
  }
}

interface Held {
  readonly tasks: Map<string, TaskRecord>
  readonly nodes: Map<string, NodeRecord>
  readonly groups: Map<string, Group>
  readonly configs: Map<number, ConfigRecord>
  /**
   * The event with number seq is at index seq % capacity: numbers have no gaps, so the newest overwrite the
   * oldest.
   */
  readonly events: Event[]
  readonly eventCapacity: number
  /** Oldest first. */
  readonly decisions: Decision[]
  readonly decisionCapacity: number
  /** Earlier events precede this store. */
  readonly floorEventSeq: number
  lastEventSeq: number
  readonly tokens: Map<string, TokenRecord>
  readonly secrets: Map<string, SecretRecord>
  /** Entries by seq, in this order. */
  readonly audits: Map<number, AuditRecord>
  readonly submissionKeys: Map<number, SubmissionKeyRecord>
  readonly retainFinished: boolean
  /** Final tasks that are counted and no longer in `tasks`. */
  readonly dropped: Record<FinalState, number>
  marks: StoredState['marks']
  recovery: RecoveryRecord | null
  /** By epoch, ascending. */
  readonly epochs: EpochRecord[]
}

function hold(options: MemoryStoreOptions): Held {
  const { initial = EMPTY_STATE, initialFinished = [] } = options
  return {
    tasks: new Map([...initialFinished, ...initial.openTasks].map((task) => [task.id, task])),
    nodes: new Map(initial.nodes.map((node) => [node.id, node])),
    groups: new Map(initial.groups.map((group) => [group.id, group])),
    configs: new Map(initial.config === null ? [] : [[initial.config.revision, initial.config]]),
    events: [],
    decisions: [],
    decisionCapacity: options.retainDecisions ?? 0,
    eventCapacity: options.retainEvents ?? RETAIN_EVENTS,
    floorEventSeq: initial.marks.nextEventSeq,
    lastEventSeq: initial.marks.nextEventSeq - 1,
    tokens: new Map(initial.tokens.map((token) => [token.id, token])),
    secrets: new Map(initial.secrets.map((secret) => [secretId(secret), secret])),
    audits: new Map(),
    submissionKeys: new Map(initial.submissionKeys.map((key) => [key.seq, key])),
    retainFinished: options.retainFinished ?? true,
    dropped: countsWithout(initial.finishedCounts, initialFinished),
    marks: initial.marks,
    recovery: initial.recovery,
    epochs: [...initial.epochs],
  }
}

function countsWithout(
  counts: StoredState['finishedCounts'],
  kept: readonly TaskRecord[],
): Record<FinalState, number> {
  const left = { ...counts }
  for (const { state } of kept) if (isFinal(state)) left[state] -= 1
  return left
}

function commit(held: Held, batch: Batch): Promise<void> | undefined {
  if (batch.marks.epoch < held.marks.epoch) return Promise.reject(fenced(batch.marks.epoch, held.marks.epoch))
  for (const task of batch.tasks) keepTask(held, task)
  for (const id of batch.forgottenNodeIds) held.nodes.delete(id)
  for (const node of batch.nodes) held.nodes.set(node.id, node)
  for (const id of batch.deletedGroupIds) held.groups.delete(id)
  for (const group of batch.groups) held.groups.set(group.id, group)
  if (batch.config !== null) {
    held.configs.set(batch.config.revision, batch.config)
    held.configs.delete(batch.config.revision - MAX_CONFIG_REVISIONS)
  }
  if (held.eventCapacity > 0) for (const event of batch.events) keepEvent(held, event)
  if (batch.access !== null) keepAccess(held, batch.access)
  if (batch.submissionKeys !== null) keepSubmissionKeys(held, batch.submissionKeys)
  if (held.decisionCapacity > 0 && batch.decisions.length > 0) keepDecisions(held, batch.decisions)
  if (batch.endsRecovery) held.recovery = null
  if (batch.marks.epoch > held.marks.epoch) keepEpoch(held, batch)
  held.marks = batch.marks
  return undefined
}

/** Call before the marks of the batch are applied. */
function keepEpoch({ epochs, marks }: Held, { marks: { epoch }, controller }: Batch): void {
  epochs.push({
    epoch,
    firstEventSeq: marks.nextEventSeq,
    ...(controller === undefined ? {} : { controller }),
  })
  if (epochs.length > MAX_EPOCH_RECORDS) epochs.splice(0, epochs.length - MAX_EPOCH_RECORDS)
}

function fenced(epoch: number, newest: number): StoreFault {
  return new StoreFault(
    `a controller with epoch ${newest} has taken over from epoch ${epoch}: this one must stop`,
  )
}

function keepTask(held: Held, task: TaskRecord): void {
  if (held.retainFinished || !isFinal(task.state)) {
    held.tasks.set(task.id, task)
    return
  }
  held.tasks.delete(task.id)
  held.dropped[task.state]++
}

function keepAccess(held: Held, changes: AccessRecords): void {
  const { tokens, revokedTokenIds, secrets, deletedSecrets, audits } = changes
  for (const secret of deletedSecrets) held.secrets.delete(secretId(secret))
  for (const secret of secrets) held.secrets.set(secretId(secret), secret)
  for (const id of revokedTokenIds) held.tokens.delete(id)
  for (const token of tokens) held.tokens.set(token.id, token)
  for (const audit of audits) held.audits.set(audit.seq, audit)
  for (const seq of held.audits.keys()) {
    if (held.audits.size <= RETAIN_AUDITS) return
    held.audits.delete(seq)
  }
}

function keepSubmissionKeys({ submissionKeys }: Held, { added, keptFromSeq }: SubmissionKeyRecords): void {
  for (const key of added) submissionKeys.set(key.seq, key)
  for (const seq of submissionKeys.keys()) {
    if (seq >= keptFromSeq) return
    submissionKeys.delete(seq)
  }
}

function keepEvent(held: Held, event: Event): void {
  held.events[event.seq % held.eventCapacity] = event
  held.lastEventSeq = event.seq
}

function keepDecisions(held: Held, decisions: readonly Decision[]): void {
  held.decisions.push(...decisions)
  if (held.decisions.length > held.decisionCapacity)
    held.decisions.splice(0, held.decisions.length - held.decisionCapacity)
}

function decisions(held: Held, query: DecisionQuery): Decision[] {
  const found = held.decisions.filter((decision) => isDecisionWanted(query, decision))
  return (query.afterNumber === null ? found.reverse() : found).slice(0, query.limit)
}

const bySeq = (a: { readonly seq: number }, b: { readonly seq: number }) => a.seq - b.seq

/** 1. Ordinal. 2. Node id. */
const byOrdinal = firstDifference<NodeRecord>(
  (a, b) => a.ordinal - b.ordinal,
  (a, b) => byCodeUnits(a.id, b.id),
)

/** 1. Creation. 2. Token id. */
const byCreation = firstDifference<TokenRecord>(
  (a, b) => a.createdAt - b.createdAt,
  (a, b) => byCodeUnits(a.id, b.id),
)

function stateOf(held: Held): StoredState {
  const openTasks: TaskRecord[] = []
  const finishedCounts = { ...held.dropped }
  for (const task of held.tasks.values()) {
    if (isFinal(task.state)) finishedCounts[task.state]++
    else openTasks.push(task)
  }
  return {
    openTasks: openTasks.sort(bySeq),
    nodes: [...held.nodes.values()].sort(byOrdinal),
    groups: [...held.groups.values()].sort((a, b) => byCodeUnits(a.id, b.id)),
    config: revisionsOf(held)[0] ?? null,
    tokens: [...held.tokens.values()].sort(byCreation),
    secrets: [...held.secrets.values()].sort((a, b) => byCodeUnits(secretId(a), secretId(b))),
    lastAuditSeq: [...held.audits.keys()].at(-1) ?? 0,
    submissionKeys: [...held.submissionKeys.values()].sort(bySeq),
    marks: held.marks,
    mark: { epoch: held.marks.epoch, eventSeq: held.marks.nextEventSeq - 1, chain: EMPTY_CHAIN },
    recovery: held.recovery,
    epochs: [...held.epochs],
    finishedCounts,
  }
}

/** Newest first. */
function revisionsOf(held: Held): ConfigRecord[] {
  return [...held.configs.values()].sort((a, b) => b.revision - a.revision)
}

function readsOf(held: Held): StoreReads {
  return {
    task: (id) => Promise.resolve(held.tasks.get(id) ?? null),
    finishedTasks: (query) => Promise.resolve(finishedTasks(held, query)),
    events: (query) => Promise.resolve(events(held, query)),
    eventRange: () => Promise.resolve(eventRange(held)),
    decision: (number) =>
      Promise.resolve(held.decisions.find((decision) => decision.number === number) ?? null),
    decisions: (query) => Promise.resolve(decisions(held, query)),
    audits: (query) => Promise.resolve(audits(held, query)),
    configRevisions: ({ before, limit }) =>
      Promise.resolve(
        revisionsOf(held)
          .filter(({ revision }) => before === null || revision < before)
          .slice(0, limit),
      ),
  }
}

function finishedTasks(held: Held, query: FinishedQuery): TaskRecord[] {
  const isWanted = (task: TaskRecord) =>
    isFinal(task.state) &&
    query.states.includes(task.state) &&
    (query.owner === null || task.owner === query.owner) &&
    (query.nameContains === null || isFoundBy(query.nameContains, task)) &&
    (query.nodeId === null || task.lastNodeId === query.nodeId) &&
    (query.beforeSeq === null || task.seq < query.beforeSeq) &&
    (query.afterSeq === null || task.seq > query.afterSeq)
  return [...held.tasks.values()]
    .filter(isWanted)
    .sort((a, b) => (query.isOldestFirst ? bySeq(a, b) : bySeq(b, a)))
    .slice(0, query.limit)
}

function events(held: Held, query: EventQuery): Event[] {
  const { afterSeq, beforeSeq = null, isNewestFirst = false, limit } = query
  const { firstSeq, lastSeq } = eventRange(held)
  const first = Math.max(afterSeq + 1, firstSeq)
  const last = beforeSeq === null ? lastSeq : Math.min(beforeSeq - 1, lastSeq)
  const found: Event[] = []
  for (let step = 0; step <= last - first && found.length < limit; step++) {
    const seq = isNewestFirst ? last - step : first + step
    const event = held.events[seq % held.eventCapacity]
    if (event?.seq === seq && isWanted(query, event)) found.push(event)
  }
  return found
}

function audits(held: Held, query: AuditQuery): AuditRecord[] {
  const isWanted = (audit: AuditRecord) =>
    (query.beforeSeq === null || audit.seq < query.beforeSeq) &&
    (query.actor === null || audit.actor === query.actor) &&
    (query.action === null || audit.action === query.action) &&
    (query.outcome === null || audit.outcome === query.outcome) &&
    (query.targetContains === null || audit.target.includes(query.targetContains)) &&
    (query.since === null || audit.at >= query.since) &&
    (query.until === null || audit.at < query.until)
  return [...held.audits.values()]
    .filter(isWanted)
    .sort((a, b) => bySeq(b, a))
    .slice(0, query.limit)
}

function isWanted(query: EventQuery, event: Event): boolean {
  const { fromAt = null, untilAt = null } = query
  return (
    (fromAt === null || event.at >= fromAt) &&
    (untilAt === null || event.at < untilAt) &&
    isEventWanted(query, event)
  )
}

function eventRange({ eventCapacity, floorEventSeq, lastEventSeq, marks }: Held): EventRange {
  const lastSeq = eventCapacity === 0 ? marks.nextEventSeq - 1 : lastEventSeq
  return { firstSeq: Math.max(floorEventSeq, lastSeq - eventCapacity + 1), lastSeq }
}
