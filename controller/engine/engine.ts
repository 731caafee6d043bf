/**
 * The engine applies inputs at once, runs one cycle for all inputs of an instant, and commits the result as
 * one batch before a message is sent or an answer is given. While one transaction commits, the next one fills
 * (group commit).
 */
import type { Boot } from '../../protocol/message-fields.ts'
import type { CommandResult, Heartbeat, Hello, NodeEvent } from '../../protocol/messages.ts'
import type { Instant } from '../../protocol/units.ts'
import type { ConfigFields } from '../model/config.ts'
import type { Event } from '../model/event.ts'
import { DEFAULT_CONFIG } from '../model/config.ts'
import { NO_OWNER_LIMITS } from '../model/owner-limits.ts'
import type { RandomStream } from '../ports/random.ts'
import { RANK_DECISION } from '../ports/clock.ts'
import type { StoredState, TermRecord } from '../ports/store.ts'
import { StoreFault } from '../ports/store.ts'
import type { Commands } from '../model/command.ts'
import { AccessRegistry } from './inputs/commands/access-registry.ts'
import { Cluster } from '../state/cluster.ts'
import { isSettled, runCycle } from './cycle.ts'
import { EngineCommands } from './inputs/commands/engine-commands.ts'
import type { EngineOptions } from './engine-options.ts'
import type { MarkVerdict, NodeMark, OwnMark } from '../state/epoch-history.ts'
import type { BehindReason } from '../model/controller-status.ts'
import { leaseTimes, LONE_LEASE_MS, type LeaseTimes } from './lease-times.ts'
import { processIdFrom } from './process-id.ts'
import { errorText } from '../../protocol/error-text.ts'
import { settlePause } from './inputs/nodes/after-pause.ts'
import type { NodeReport, StampedMark } from './inputs/nodes/contacts.ts'
import { noteAhead, noteContact, noteLossHeard } from './inputs/nodes/contacts.ts'
import { beginStartWait, pauseOf } from '../state/placement-pause.ts'
import { beginRecovery, endRecoveryWhenAllHaveSpoken } from './inputs/nodes/recovery-mode.ts'
import { endExpiredLeases } from './inputs/commands/leases.ts'
import type { LiveNode } from '../state/facts.ts'
import { setBrokerAway } from '../state/broker-absence.ts'
import { extendGrace, updateLiveness } from './inputs/nodes/liveness.ts'
import { applyCommandResult, applyNodeEvent } from './inputs/nodes/node-events.ts'
import type { EngineCheckpoint } from './engine-checkpoint.ts'
import type { PendingIds, PendingRestorer } from '../ports/pending-ids.ts'
import { captureCluster, restoreCluster } from '../state/snapshot/snapshot.ts'
import { captureTransaction, restoreTransaction } from '../state/snapshot/transaction-snapshot.ts'
import { TIMERS } from './timers.ts'
import type { SnapshotAnswer } from './inputs/nodes/node-registry.ts'
import { applyHello, applySnapshot, heard, noteReset } from './inputs/nodes/node-registry.ts'
import { grantLease } from '../state/node-contact.ts'
import { restore } from './recovery.ts'
import { Transaction, type CommitFailed } from '../state/transaction.ts'
import { batchOf } from './transaction-batch.ts'
import type { EngineInputTap } from './input-tap.ts'
import { NO_TAP } from './input-tap.ts'

export class Engine {
  readonly cluster: Cluster
  readonly access: AccessRegistry
  readonly commands: Commands
  readonly #options: EngineOptions
  readonly #lease: LeaseTimes
  readonly #inputTap: EngineInputTap
  #epoch = 0
  /** Id of this process; empty before the start. */
  #process = ''
  #durableEventSeq = 0
  readonly #processIds: RandomStream
  #commits = 0
  #isCyclePlanned = false
  /** The transaction that is being committed. */
  #committing: Transaction | null = null
  #fault: unknown = null
  /**
   * When the last durable commit began: every commit writes the epoch, and no other controller had taken over
   * before it.
   */
  #renewedAt: Instant = 0
  /** When the last commit began. */
  #committedAt: Instant = 0
  #wakeAt: Instant | null = null
  #cancelWake: (() => void) | null = null
  #spareTransaction: Transaction | null = null
  readonly #cycle = (): void => this.#runCycle()
  readonly #wake = (): void => {
    this.#wakeAt = null
    this.#planCycle()
  }
  /** Measures the time spent deciding and committing, for `timing`; null: not measured. */
  stopwatch: { start(): void; stop(): void } | null = null

  constructor(options: EngineOptions) {
    this.#options = options
    this.#lease = leaseTimes(options.leaseMs ?? LONE_LEASE_MS)
    this.#inputTap = options.inputTap ?? NO_TAP
    const fields: ConfigFields = { ...DEFAULT_CONFIG, ...options.initialConfig }
    const now = options.clock.now()
    const wake = (at: Instant, fn: (now: Instant) => void) =>
      options.clock.at(at, this.#woken(fn), RANK_DECISION)
    const config = { fields, source: 'environment', revision: 0 } as const
    this.cluster = new Cluster(config, now, wake, options.victimPolicy)
    const transaction = {
      now: () => this.#now(),
      whenDurable: (done: () => void, failed: CommitFailed) => this.#whenDurable(done, failed),
      fault: () => (this.#fault === null ? null : errorText(this.#fault)),
    }
    this.commands = new EngineCommands(this.cluster, options.random.stream('task-ids'), transaction)
    this.access = new AccessRegistry(
      this.#inputTap.access({
        ...transaction,
        transaction: () => this.cluster.eventLog.transaction,
        write: () => this.#write(),
      }),
    )
    this.#processIds = options.random.stream('controller-process')
    this.cluster.leases.lengthMs = options.taskLeaseMs
    this.cluster.limitOwners(options.ownerLimits ?? NO_OWNER_LIMITS)
    this.cluster.eventLog.isForgetful = options.store.isForgetful === true
    this.cluster.eventLog.keepsDecisions = options.store.keepsDecisions === true
  }

  get epoch(): number {
    return this.#epoch
  }

  /** Id of this controller process; a new one after each start. */
  get process(): string {
    return this.#process
  }

  /** The mark against which the marks of nodes are judged. */
  get ownMark(): OwnMark {
    return {
      epoch: this.#epoch,
      controller: this.#process,
      lastEventSeq: this.cluster.eventLog.nextEventSeq - 1,
    }
  }

  /** Sequence number of the last durable event. */
  get durableEventSeq(): number {
    return this.#durableEventSeq
  }

  /** A transaction is being committed. */
  get isCommitting(): boolean {
    return this.#committing !== null
  }

  get isFaulty(): boolean {
    return this.#fault !== null
  }

  /** Loads the durable state and takes over with a higher epoch. `begin` runs once the epoch is durable. */
  async start(begin: () => void = NO_OP): Promise<void> {
    const state = await this.#options.store.load()
    await new Promise<void>((done, failed) => {
      this.#inputTap.storeAnswered({ k: 'loaded', state }, () => this.#take(state, begin, done, failed))
    })
  }

  #take(state: StoredState, begin: () => void, done: () => void, failed: (fault: unknown) => void): void {
    const now = this.#now()
    this.#epoch = state.marks.epoch + 1
    this.#process = processIdFrom(this.#processIds)
    this.#durableEventSeq = state.marks.nextEventSeq - 1
    this.cluster.history.load(state.epochs)
    const start = { epoch: this.#epoch, firstEventSeq: state.marks.nextEventSeq, controller: this.#process }
    this.cluster.history.begin(start, state.recovery !== null)
    restore(this.cluster, state, now)
    beginStartWait(this.cluster, state.nodes, now)
    this.access.restore(state)
    const act = (): void => {
      this.#renewedAt = this.#committedAt
      this.#planCycle()
      begin()
      done()
    }
    // The epoch must be durable before anything else is written or sent: another start could take the same
    // one.
    const transaction = new Transaction()
    const committed = this.#store(transaction)
    // Its event is numbered after the epoch's marks are written: a start that fails in between leaves no gap.
    if (state.recovery !== null) beginRecovery(this.cluster, state.recovery, state.nodes, now)
    if (state.term !== undefined) noteTerm(this.cluster, state.term, this.#epoch, now)
    this.cluster.wasPaused = pauseOf(this.cluster) !== null
    const n = this.#commits
    if (committed === undefined) return act()
    this.#committing = transaction
    const begun = (): void => {
      this.#committing = null
      act()
    }
    committed.then(() => this.#inputTap.storeAnswered({ k: 'durable', n }, begun)).catch(failed)
  }

  /**
   * Writes the epoch again, unless a commit has just done so or is about to (R9). Fails when the store has
   * not answered within `commitWithinMs`.
   */
  renewEpoch(): void {
    if (this.#fault !== null) return
    const now = this.#now()
    if (this.isCommitting && now - this.#committedAt > this.#lease.commitWithinMs) {
      const seconds = Math.round((now - this.#committedAt) / 1000)
      this.#fail(
        new Transaction(),
        new StoreFault(`the store has not answered for ${seconds} s: it may have another owner by now`),
      )
    }
    const { transaction } = this.cluster.eventLog
    if (
      this.isCommitting ||
      this.#isCyclePlanned ||
      !transaction.isEmpty() ||
      now - this.#renewedAt < this.#lease.renewMs
    )
      return
    transaction.renewsEpoch = true
    this.#flush()
  }

  // ── checkpoints ──────────────────────────────────────────────────────────────

  /** Captures the state between two inputs. */
  capture(ids: PendingIds): EngineCheckpoint {
    const { nextEventSeq, nextDecision, transaction } = this.cluster.eventLog
    return {
      ...{ process: this.#process, durableEventSeq: this.#durableEventSeq },
      ...{
        epoch: this.#epoch,
        commits: this.#commits,
        nextEventSeq,
        nextDecision,
        transaction: captureTransaction(transaction),
      },
      renewedAt: this.#renewedAt,
      committedAt: this.#committedAt,
      cycle: this.#isCyclePlanned ? ids.soon(this.#cycle) : null,
      wake:
        this.#wakeAt === null || this.#cancelWake === null
          ? null
          : { at: this.#wakeAt, timer: ids.timer(this.#cancelWake) },
      committing: this.#committing === null ? null : captureTransaction(this.#committing),
      fault: this.#fault === null ? null : errorText(this.#fault),
      cluster: captureCluster(this.cluster, (cancel) => ids.timer(cancel)),
    }
  }

  /** Continues from a checkpoint instead of a start: nothing is read, committed or sent. */
  restore(checkpoint: EngineCheckpoint, restorer: PendingRestorer): void {
    const { eventLog } = this.cluster
    this.#epoch = checkpoint.epoch
    this.#process = checkpoint.process
    this.#durableEventSeq = checkpoint.durableEventSeq
    this.#commits = checkpoint.commits
    this.#renewedAt = checkpoint.renewedAt
    this.#committedAt = checkpoint.committedAt
    restoreCluster(this.cluster, checkpoint.cluster, {
      ...TIMERS,
      wake: (id, fn) => restorer.timer(id, this.#woken(fn)),
    })
    const { nextEventSeq, nextDecision } = checkpoint
    Object.assign(eventLog, { nextEventSeq, nextDecision })
    const giveLease = (nodeId: string): void => this.#giveLease(nodeId, NO_OP)
    eventLog.transaction = restoreTransaction(this.cluster, checkpoint.transaction, giveLease)
    if (checkpoint.cycle !== null) restorer.timer(checkpoint.cycle, this.#cycle)
    this.#isCyclePlanned = checkpoint.cycle !== null
    this.#wakeAt = checkpoint.wake?.at ?? null
    this.#cancelWake = checkpoint.wake === null ? null : restorer.timer(checkpoint.wake.timer, this.#wake)
    this.#fault = checkpoint.fault === null ? null : new StoreFault(checkpoint.fault)
    if (checkpoint.committing !== null)
      this.#await(
        restoreTransaction(this.cluster, checkpoint.committing, giveLease),
        restorer.commit(checkpoint.commits),
      )
  }

  // ── messages of nodes ────────────────────────────────────────────────────────

  /** Judges whether the store has everything that the sender of this message has heard of. */
  judge(id: NodeMark): MarkVerdict {
    return this.cluster.history.judge(id, this.ownMark)
  }

  /** A node has heard of more than the store has: it gets neither an answer nor commands. */
  heardAhead(contact: NodeReport, reason: BehindReason, id: StampedMark): void {
    noteAhead(this.cluster, contact, reason, id, this.#now())
    this.#planCycle()
  }

  /**
   * Records that the node has heard of something that a restore or an accepted loss has taken from the store.
   */
  heardOfLoss(nodeId: string): void {
    noteLossHeard(this.cluster, nodeId)
  }

  hello(hello: Hello, boot: Boot, seq: number, done: (answer: SnapshotAnswer) => void): void {
    const now = this.#now()
    noteContact(this.cluster, hello.node_id, now)
    const answer = applyHello(this.cluster, hello, boot, seq, now)
    endRecoveryWhenAllHaveSpoken(this.cluster, now)
    this.#whenLeaseIsDurable(hello.node_id, () => done(answer))
  }

  heartbeat(node: LiveNode, heartbeat: Heartbeat, seq: number, done: (answer: SnapshotAnswer) => void): void {
    const now = this.#now()
    noteContact(this.cluster, node.id, now)
    const answer = applySnapshot(this.cluster, node, heartbeat, seq, now)
    endRecoveryWhenAllHaveSpoken(this.cluster, now)
    this.#whenLeaseIsDurable(node.id, () => done(answer))
  }

  /** A message that a later one has overtaken changes nothing: the later one covers it (R8). */
  nodeEvents(node: LiveNode, events: readonly NodeEvent[], seq: number, done: () => void): void {
    const now = this.#now()
    heard(this.cluster, node, seq, now)
    if (seq > node.contact.eventSeq) {
      node.contact.eventSeq = seq
      for (const event of events) applyNodeEvent(this.cluster, node.id, event, now)
    }
    this.#whenDurable(done)
  }

  /** `seq` is the number of the node's message. */
  commandResult(nodeId: string, command: string, result: CommandResult, seq: number): void {
    const now = this.#now()
    applyCommandResult(this.cluster, nodeId, command, result, seq, now)
    // The usual answer, `accepted`, changes nothing.
    if (!isSettled(this.cluster, now) || !this.cluster.eventLog.transaction.isEmpty()) this.#planCycle()
  }

  /**
   * A sender with the node's identity knows less than this node has reported: it will be told to start a new
   * boot (R6).
   */
  nodeReset(node: LiveNode, done: () => void): void {
    noteReset(this.cluster, node)
    this.#whenDurable(done)
  }

  /** The controller's own connection to the broker was lost or restored. */
  brokerConnection(isConnected: boolean): void {
    if (setBrokerAway(this.cluster, !isConnected, this.#now())) this.#planCycle()
  }

  /**
   * Time has passed: nodes may have become silent and leases may have ended (R4, R5). `deafMs` is the time
   * during which the controller could not receive messages.
   */
  checkLiveness(deafMs: number): void {
    const now = this.#now()
    if (deafMs > 0) {
      extendGrace(this.cluster, deafMs)
      this.cluster.leases.extend(deafMs)
    }
    const isSilenceNews = updateLiveness(this.cluster, now)
    const isLeaseNews = !this.cluster.broker.isAway && endExpiredLeases(this.cluster, now)
    if (isSilenceNews || isLeaseNews) this.#planCycle()
  }

  // ── the transaction ──────────────────────────────────────────────────────────

  #now(): Instant {
    return this.#options.clock.now()
  }

  /** The answer gives the node a lease, which counts from then on (R5). */
  #whenLeaseIsDurable(nodeId: string, done: () => void): void {
    this.#whenDurable(() => this.#giveLease(nodeId, done), NO_OP, nodeId)
  }

  #giveLease(nodeId: string, answer: () => void): void {
    const node = this.cluster.nodes.get(nodeId)
    if (node !== undefined) {
      grantLease(node.contact, this.cluster.policy.runLeaseMs, this.#now())
      node.contact.isAnswered = true
    }
    answer()
    this.#options.onAnswered?.(nodeId)
  }

  #whenDurable(done: () => void, failed: CommitFailed = NO_OP, leaseTo?: string): void {
    const { eventLog } = this.cluster
    const isDecided = !this.#isCyclePlanned && !this.cluster.hasWork()
    if (isDecided) this.#wakeForNextEligibility()
    if (isDecided && !this.isCommitting && eventLog.transaction.isEmpty() && !this.#mayBeReplaced()) {
      // Nothing to write and nothing to wait for.
      done()
      return
    }
    eventLog.transaction.acknowledgements.push(
      leaseTo === undefined ? { done, failed } : { done, failed, leaseTo },
    )
    if (isDecided) this.#flush()
    else this.#planCycle()
  }

  /**
   * Wakes earlier without a cycle: a waiting entry must not miss a victim that is now the next to become
   * eligible.
   */
  #wakeForNextEligibility(): void {
    if (!this.cluster.hasWaitingTasks()) return
    const at = this.cluster.eligibilityTimers.nextAt()
    if (at !== null && (this.#wakeAt === null || at < this.#wakeAt)) this.#planWake(at, this.#now())
  }

  /** Wraps a timer callback of the cluster: runs it, then plans a cycle. */
  #woken(fn: (now: Instant) => void): () => void {
    return () => {
      fn(this.#now())
      this.#planCycle()
    }
  }

  #planCycle(): void {
    if (this.#isCyclePlanned) return
    this.#isCyclePlanned = true
    this.#options.clock.soon(this.#cycle, RANK_DECISION)
  }

  #runCycle(): void {
    this.#isCyclePlanned = false
    if (this.#fault !== null) return
    this.stopwatch?.start()
    const now = this.#now()
    const isResumed = settlePause(this.cluster, now)
    this.#planWake(runCycle(this.cluster, now), now)
    this.stopwatch?.stop()
    this.#flush()
    if (isResumed) this.#options.onResumed?.()
  }

  /** Plans one more cycle at the instant at which time alone may change something. */
  #planWake(at: Instant | null, now: Instant): void {
    if (at === this.#wakeAt) return
    this.#cancelWake?.()
    this.#wakeAt = at
    this.#cancelWake =
      at === null ? null : this.#options.clock.at(Math.max(at, now), this.#wake, RANK_DECISION)
  }

  /** Commits unless a cycle is planned: that cycle's changes belong to the same batch. */
  #write(): void {
    if (!this.#isCyclePlanned && this.#fault === null) this.#flush()
  }

  #flush(): void {
    const { eventLog } = this.cluster
    const transaction = eventLog.transaction
    if (this.isCommitting || transaction.isEmpty()) return
    if (!transaction.hasRecords() && this.#mayBeReplaced()) transaction.renewsEpoch = true
    eventLog.transaction = this.#spareTransaction ?? new Transaction()
    this.#spareTransaction = null
    const committed = transaction.hasRecords() ? this.#commit(transaction) : undefined
    if (committed === undefined) {
      this.#complete(transaction)
      // Durable at once and not referenced: the transaction after the next one reuses its lists.
      transaction.clear()
      this.#spareTransaction = transaction
      return
    }
    this.#await(transaction, committed)
  }

  #await(transaction: Transaction, committed: Promise<void>): void {
    this.#committing = transaction
    const n = this.#commits
    committed.then(
      () => this.#inputTap.storeAnswered({ k: 'durable', n }, () => this.#committed(transaction)),
      (fault: unknown) =>
        this.#inputTap.storeAnswered({ k: 'failed', n, message: errorText(fault) }, () =>
          this.#fail(transaction, fault),
        ),
    )
  }

  #committed(transaction: Transaction): void {
    if (this.#fault !== null) return
    this.#committing = null
    this.#complete(transaction)
    this.#flush()
  }

  #commit(transaction: Transaction): Promise<void> | undefined {
    for (const task of transaction.dirtyTasks) task.isDirty = false
    for (const node of transaction.dirtyNodes) node.isDirty = false
    return this.#store(transaction)
  }

  /**
   * Returns true if the epoch was not written lately: another controller may have taken over. It gives every
   * node a lease window from then on (R5, R9).
   */
  #mayBeReplaced(): boolean {
    return this.#now() - this.#renewedAt > this.#lease.leadsForMs
  }

  #store(transaction: Transaction): Promise<void> | undefined {
    this.#commits += 1
    this.#committedAt = this.#now()
    return this.#options.store.commit(batchOf(this.cluster, transaction, this.#epoch, this.#process))
  }

  #complete(transaction: Transaction): void {
    if (transaction.hasRecords()) this.#renewedAt = this.#committedAt
    if (transaction.events.length > 0) {
      this.#durableEventSeq = (transaction.events.at(-1) as Event).seq
      this.#options.onEvents(transaction.events)
    }
    // A node must receive its welcome before it is told to start something.
    for (const answer of transaction.acknowledgements) answer.done()
    for (const effect of transaction.effects) this.#options.send(effect)
  }

  /** Neither this transaction nor any later one is acknowledged (R10). */
  #fail(transaction: Transaction, fault: unknown): void {
    if (this.#fault !== null) return
    this.#fault = fault
    const detail = errorText(fault)
    for (const answer of transaction.acknowledgements) answer.failed(detail, 'commit_unknown')
    const { transaction: next } = this.cluster.eventLog
    if (next !== transaction)
      for (const answer of next.acknowledgements) answer.failed(detail, 'store_failed')
    this.#options.onFault(fault)
  }
}

function noteTerm(c: Cluster, { controller, before, reason }: TermRecord, epoch: number, now: Instant): void {
  c.eventLog.emit(now, 'leader_changed', null, null, null, { leader: controller, before, reason, epoch })
}

const NO_OP = (): void => {}
