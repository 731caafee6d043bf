/**
 * The state of the store in a standby's memory: what a controller starts from, kept up to date from the
 * entries of the commit log. It decides nothing. What a takeover can read in a few rows is not kept.
 */
import type { Group } from '../../model/group.ts'
import { isFinal } from '../../model/task.ts'
import type {
  ConfigRecord,
  NodeRecord,
  SecretRecord,
  StoredState,
  SubmissionKeyRecord,
  TaskRecord,
  TokenRecord,
} from '../../ports/store.ts'
import {
  decodeConfig,
  decodeTask,
  type AuditRow,
  type ConfigRow,
  type EventRow,
  type GroupRow,
  type MarksRow,
  type NodeRow,
  type SecretRow,
  type SubmissionKeyRow,
  type TaskRow,
  type TokenRow,
} from '../sql/rows.ts'

/** Keys of a batch (commit-plan.ts) that change this state. Rows may end with a checksum. */
export interface LoggedBatch {
  readonly tasks?: readonly TaskRow[]
  readonly forgotten_nodes?: readonly string[]
  readonly nodes?: readonly NodeRow[]
  readonly deleted_groups?: readonly string[]
  readonly groups?: readonly GroupRow[]
  readonly configs?: readonly ConfigRow[]
  readonly keys?: readonly SubmissionKeyRow[]
  readonly keys_kept_from?: number
  readonly deleted_secrets?: readonly string[]
  readonly secrets?: readonly SecretRow[]
  readonly revoked_tokens?: readonly string[]
  readonly tokens?: readonly TokenRow[]
  readonly audits?: readonly AuditRow[]
  /** Events before and after: numbers and hash of the last one. */
  readonly chain?: readonly [before: number, headSeq: number, headHash: string, ...unknown[]]
  readonly events?: readonly EventRow[]
  readonly marks: MarksRow
}

export type FinishedCounts = StoredState['finishedCounts']

/** The rest of StoredState is read at a takeover. */
export type ReplicaState = Omit<StoredState, 'marks' | 'mark' | 'recovery' | 'epochs' | 'finishedCounts'> & {
  /** Null: they have to be counted. */
  readonly finishedCounts: FinishedCounts | null
}

export class Replica {
  readonly #tasks: Map<string, TaskRecord>
  readonly #nodes: Map<string, NodeRecord>
  readonly #groups: Map<string, Group>
  readonly #tokens: Map<string, TokenRecord>
  readonly #secrets: Map<string, SecretRecord>
  readonly #keys: Map<number, SubmissionKeyRecord>
  readonly #finished: Record<keyof FinishedCounts, number>
  #areCountsKnown = true
  #config: ConfigRecord | null
  #lastAuditSeq: number
  #nextTaskSeq: number

  /** @param idOfSecret the id of its row */
  constructor(state: StoredState, idOfSecret: (secret: SecretRecord) => string) {
    this.#tasks = new Map(state.openTasks.map((task) => [task.id, task]))
    this.#nodes = new Map(state.nodes.map((node) => [node.id, node]))
    this.#groups = new Map(state.groups.map((group) => [group.id, group]))
    this.#tokens = new Map(state.tokens.map((token) => [token.id, token]))
    this.#secrets = new Map(state.secrets.map((secret) => [idOfSecret(secret), secret]))
    this.#keys = new Map(state.submissionKeys.map((key) => [key.seq, key]))
    this.#finished = { ...state.finishedCounts }
    this.#config = state.config
    this.#lastAuditSeq = state.lastAuditSeq
    this.#nextTaskSeq = state.marks.nextTaskSeq
  }

  /** Applies the next entry. Removals come first, as in the commit. */
  apply(batch: LoggedBatch): void {
    for (const row of batch.tasks ?? []) this.#task(row)
    for (const id of batch.forgotten_nodes ?? []) this.#nodes.delete(id)
    for (const [id, , record] of batch.nodes ?? []) this.#nodes.set(id, JSON.parse(record) as NodeRecord)
    for (const id of batch.deleted_groups ?? []) this.#groups.delete(id)
    for (const [id, record] of batch.groups ?? []) this.#groups.set(id, JSON.parse(record) as Group)
    for (const row of batch.configs ?? [])
      if (row[0] >= (this.#config?.revision ?? 0)) this.#config = decodeConfig(row)
    for (const [seq, key, body, taskId, at] of batch.keys ?? [])
      this.#keys.set(seq, { seq, key, body, taskId, at })
    this.#removeKeys(batch.keys_kept_from ?? 0)
    for (const id of batch.deleted_secrets ?? []) this.#secrets.delete(id)
    for (const [id, record] of batch.secrets ?? []) this.#secrets.set(id, JSON.parse(record) as SecretRecord)
    for (const id of batch.revoked_tokens ?? []) this.#tokens.delete(id)
    for (const [id, , record] of batch.tokens ?? []) this.#tokens.set(id, JSON.parse(record) as TokenRecord)
    for (const [seq] of batch.audits ?? []) this.#lastAuditSeq = Math.max(this.#lastAuditSeq, seq)
    this.#nextTaskSeq = batch.marks[1]
  }

  #task([seq, id, state, , , , , record]: TaskRow): void {
    const wasOpen = this.#tasks.has(id)
    if (!isFinal(state as TaskRecord['state'])) {
      // A task that is final stays so: otherwise it would be counted twice.
      if (!wasOpen && seq < this.#nextTaskSeq) this.#areCountsKnown = false
      this.#tasks.set(id, decodeTask(record))
      return
    }
    this.#tasks.delete(id)
    if (wasOpen || seq >= this.#nextTaskSeq) this.#finished[state as keyof FinishedCounts] += 1
    // The record of a final task was written again, perhaps with another state.
    else this.#areCountsKnown = false
  }

  /** Keys are in the order of their numbers. */
  #removeKeys(keptFrom: number): void {
    for (const seq of this.#keys.keys()) {
      if (seq >= keptFrom) return
      this.#keys.delete(seq)
    }
  }

  /**
   * Returns the state in the orders of a loaded state. The records belong to this replica, which ends with
   * it.
   */
  state(): ReplicaState {
    return {
      openTasks: [...this.#tasks.values()].sort((a, b) => a.seq - b.seq),
      nodes: [...this.#nodes.values()].sort((a, b) => a.ordinal - b.ordinal || compared(a.id, b.id)),
      groups: sortedById(this.#groups),
      config: this.#config,
      tokens: [...this.#tokens.values()].sort((a, b) => a.createdAt - b.createdAt || compared(a.id, b.id)),
      secrets: sortedById(this.#secrets),
      lastAuditSeq: this.#lastAuditSeq,
      submissionKeys: [...this.#keys.values()].sort((a, b) => a.seq - b.seq),
      finishedCounts: this.#areCountsKnown ? { ...this.#finished } : null,
    }
  }
}

function sortedById<T>(records: ReadonlyMap<string, T>): readonly T[] {
  return [...records].sort(([a], [b]) => compared(a, b)).map(([, record]) => record)
}

/** Compares by bytes, like the database. */
function compared(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
