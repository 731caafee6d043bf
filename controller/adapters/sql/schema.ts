/**
 * The tables as Kysely sees them, after the last step of migrations.ts. Times are milliseconds since the Unix
 * epoch; `sum` is the checksum of the other columns (row-sums.ts).
 */

/**
 * One row per task, open or final. `record` contains the whole TaskRecord as JSON; the other columns serve
 * queries. `seq` is the row id, so that new tasks are appended.
 */
export interface TasksTable {
  seq: number
  id: string
  state: string
  owner: string | null
  node_id: string | null
  name: string
  /**
   * 1 once the state is final. Each index covers one value only, so that a change of an open task touches no
   * index of final ones.
   */
  is_final: number
  record: string
  sum: number
}

export interface NodesTable {
  id: string
  ordinal: number
  record: string
  sum: number
}

export interface GroupsTable {
  id: string
  record: string
  sum: number
}

export interface ConfigRevisionsTable {
  revision: number
  at: number
  author: string | null
  /** ConfigFields as JSON. */
  fields: string
  sum: number
}

export interface EventsTable {
  seq: number
  at: number
  kind: string
  task_id: string | null
  node_id: string | null
  caused_by: number | null
  /** The author of the change. */
  author: string | null
  /** EventData as JSON. */
  data: string
  /** The link of the chain, 32 bytes (event-chain.ts). */
  hash: Uint8Array
}

/** One row, with id 1: both ends of the chain of events. */
export interface EventChainTable {
  id: number
  /** The newest event, 0 for none. */
  head_seq: number
  head_hash: Uint8Array
  /** The newest removed event, 0 for none: its hash precedes the first kept one. */
  pruned_seq: number
  pruned_hash: Uint8Array
  /** Bytes of the kept events (event-chain.ts, `eventBytes`). */
  kept_bytes: number
}

/** `record` contains the whole TokenRecord as JSON: the hash of the secret, never the secret. */
export interface TokensTable {
  id: string
  created_at: number
  record: string
  sum: number
}

/** `id` is owner and name as JSON; `record` contains the whole SecretRecord, whose value is encrypted. */
export interface SecretsTable {
  id: string
  record: string
  sum: number
}

/** `record` contains the whole AuditRecord as JSON; the other columns serve queries. */
export interface AuditsTable {
  seq: number
  at: number
  kind: string
  actor: string | null
  action: string
  outcome: string
  target: string
  record: string
}

/** One row per submission with an idempotency key; `key` and `body` are digests. */
export interface SubmissionKeysTable {
  /** Number of the task. */
  seq: number
  key: string
  body: string
  task_id: string
  at: number
  sum: number
}

/** One row per decision; `record` contains the whole Decision as JSON. */
export interface DecisionsTable {
  number: number
  at: number
  kind: string
  node_id: string
  record: string
}

/** The subject and the victims of a decision. */
export interface DecisionTasksTable {
  task_id: string
  number: number
}

/** One row, with id 1. */
export interface MarksTable {
  id: number
  epoch: number
  next_task_seq: number
  next_event_seq: number
  next_decision: number
}

/** One row per controller that wrote to this store (port: EpochRecord). */
export interface EpochsTable {
  epoch: number
  first_event_seq: number
  controller: string | null
}

/** One row, with id 1: compared with the mark outside the database (store-mark.ts). */
export interface HistoryTable {
  id: number
  /** 32 hexadecimal digits. */
  store_id: string
  /** Number of transactions so far. */
  commits: number
  /** 1 once a mark was created: from then on a store without one is refused. */
  is_marked: number
  /** Text of a mark that this store need not reach: it was restored, or the loss was accepted. */
  supersedes: string | null
  recovery_reason: string | null
  recovery_since: number | null
}

/** One row, with id 1: how long controllers have run on this store (retention-clock.ts). */
export interface RetentionClockTable {
  id: number
  controller_ms: number
  /** When that was written, by the wall clock. */
  wall_ms: number
  event_credit: number
  decision_credit: number
}

/** The newest rows at that moment of controller time. */
export interface RetentionMarksTable {
  controller_ms: number
  event_seq: number
  decision_number: number
}

export interface SchemaVersionTable {
  version: number
  name: string
  applied_at: number
}

export interface Schema {
  tasks: TasksTable
  nodes: NodesTable
  groups: GroupsTable
  config_revisions: ConfigRevisionsTable
  events: EventsTable
  event_chain: EventChainTable
  tokens: TokensTable
  secrets: SecretsTable
  audits: AuditsTable
  submission_keys: SubmissionKeysTable
  decisions: DecisionsTable
  decision_tasks: DecisionTasksTable
  marks: MarksTable
  epochs: EpochsTable
  history: HistoryTable
  retention_clock: RetentionClockTable
  retention_marks: RetentionMarksTable
  schema_version: SchemaVersionTable
}
