/**
 * Changes since the last commit: they are committed as one batch, and only then are its commands sent and its
 * acknowledgements given (R1).
 */
import type { Instant } from '../../protocol/units.ts'
import type { Event, EventData, EventKind } from '../model/event.ts'
import type { Decision } from '../model/decision.ts'
import type { Effect } from '../model/effect.ts'
import type { LiveNode, LiveTask } from './facts.ts'
import type { AccessChanges, ConfigRecord, SubmissionKeyRecord } from '../ports/store.ts'
import type { Group } from '../model/group.ts'
import { clear } from '../structures/list-edit.ts'

/** `commit_unknown`: the commit ended with an error; `store_failed`: nothing of it was written. */
export type CommitFailed = (detail: string, code: 'store_failed' | 'commit_unknown') => void

export class Transaction {
  readonly dirtyTasks: LiveTask[] = []
  readonly dirtyNodes: LiveNode[] = []
  readonly forgottenNodeIds: string[] = []
  readonly groups: Group[] = []
  readonly deletedGroupIds: string[] = []
  config: ConfigRecord | null = null
  readonly events: Event[] = []
  submissionKeys: { readonly added: SubmissionKeyRecord[]; keptFromSeq: number } | null = null
  /** Each has an event among `events`. */
  readonly decisions: Decision[] = []
  readonly effects: Effect[] = []
  /** Changes of tokens, secrets and audit; null without any. */
  access: AccessChanges | null = null
  /** This batch ends the store's `recovery`. */
  endsRecovery = false
  /** The epoch is written again although nothing else is (R9). */
  renewsEpoch = false
  /** Answers to clients and acknowledgements to nodes. */
  readonly acknowledgements: {
    readonly done: () => void
    readonly failed: CommitFailed
    /** The node that gets a lease with it. */
    readonly leaseTo?: string
  }[] = []

  isEmpty(): boolean {
    return (
      this.events.length === 0 &&
      this.effects.length === 0 &&
      this.acknowledgements.length === 0 &&
      this.dirtyTasks.length === 0 &&
      this.dirtyNodes.length === 0 &&
      this.config === null &&
      this.access === null &&
      !this.renewsEpoch &&
      !this.endsRecovery &&
      this.groups.length === 0 &&
      this.deletedGroupIds.length === 0 &&
      this.forgottenNodeIds.length === 0
    )
  }

  /** Clears the lists for reuse. */
  clear(): void {
    clear(this.events)
    clear(this.effects)
    clear(this.acknowledgements)
    clear(this.decisions)
    clear(this.dirtyTasks)
    clear(this.dirtyNodes)
    clear(this.groups)
    clear(this.deletedGroupIds)
    clear(this.forgottenNodeIds)
    this.config = null
    this.access = null
    this.submissionKeys = null
    this.renewsEpoch = false
    this.endsRecovery = false
  }

  /** Returns true if there is anything to make durable. */
  hasRecords(): boolean {
    return (
      this.renewsEpoch ||
      this.endsRecovery ||
      this.events.length > 0 ||
      this.dirtyTasks.length > 0 ||
      this.dirtyNodes.length > 0 ||
      this.access !== null
    )
  }
}

/** Numbers events and tracks which records must be written. */
export class EventLog {
  transaction = new Transaction()
  /** The store keeps no tasks and nodes: changes of them are not tracked. */
  isForgetful = false
  /** The store keeps decisions. */
  keepsDecisions = false
  nextEventSeq = 1
  nextDecision = 1
  /** Name of the caller whose command is being applied; null: none. */
  by: string | null = null

  emit(
    at: Instant,
    kind: EventKind,
    taskId: string | null,
    nodeId: string | null,
    causedBy: number | null,
    data: EventData,
  ): number {
    const seq = this.nextEventSeq++
    this.transaction.events.push({ seq, at, kind, taskId, nodeId, causedBy, by: this.by, data })
    return seq
  }

  taskEvent(
    at: Instant,
    kind: EventKind,
    task: LiveTask,
    nodeId: string | null,
    data: EventData,
    causedBy = task.lastEventSeq,
  ): void {
    task.lastEventSeq = this.emit(at, kind, task.spec.id, nodeId, causedBy, data)
    this.dirtyTask(task)
  }

  dirtyTask(task: LiveTask): void {
    if (task.isDirty || this.isForgetful) return
    task.isDirty = true
    this.transaction.dirtyTasks.push(task)
  }

  /** Prevents writes of the node after its removal. */
  forgetNode(node: LiveNode): void {
    const { dirtyNodes, forgottenNodeIds } = this.transaction
    const at = dirtyNodes.indexOf(node)
    if (at >= 0) dirtyNodes.splice(at, 1)
    node.isDirty = true
    forgottenNodeIds.push(node.id)
  }

  dirtyNode(node: LiveNode): void {
    if (node.isDirty || this.isForgetful) return
    node.isDirty = true
    this.transaction.dirtyNodes.push(node)
  }
}
