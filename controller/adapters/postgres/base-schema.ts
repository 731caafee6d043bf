/**
 * The tables of PostgreSQL at the first schema version that it had: those of SQLite (sqlite/migrations.ts),
 * and three of its own. Released: a later change is a step of schema-steps.ts.
 */
import { FILES_TABLES } from './files-schema.ts'
import { LEASE_TABLES } from './lease-schema.ts'

/** The schema version of these tables. */
export const BASE_VERSION = 18

/** Tables that SQLite's file does not have: it keeps the kind in its header, and has one writer. */
export const OWN_TABLES = ['commit_log', 'leader', 'store_kind', ...LEASE_TABLES, ...FILES_TABLES] as const

/** Texts compare by code units, as in SQLite. */
const TEXT = 'text collate "C"'

export const BASE_SCHEMA = `
create schema if not exists headroom;
revoke all on schema headroom from public;
set local search_path = headroom;

create table schema_version (version bigint primary key, name ${TEXT} not null, applied_at bigint not null);

create table tasks (
  seq bigint primary key,
  id ${TEXT} not null unique,
  state ${TEXT} not null,
  owner ${TEXT},
  node_id ${TEXT},
  name ${TEXT} not null,
  is_final bigint not null,
  record ${TEXT} not null,
  sum bigint
);
create index tasks_open on tasks (seq) where is_final = 0;
create index tasks_final on tasks (state, seq) where is_final = 1;
create index tasks_final_by_owner on tasks (state, owner, seq) where is_final = 1;
create index tasks_final_by_node on tasks (state, node_id, seq) where is_final = 1;

create table nodes (id ${TEXT} primary key, ordinal bigint not null, record ${TEXT} not null, sum bigint);
create table groups (id ${TEXT} primary key, record ${TEXT} not null, sum bigint);
create table config_revisions (
  revision bigint primary key,
  at bigint not null,
  author ${TEXT},
  fields ${TEXT} not null,
  sum bigint
);
create table tokens (id ${TEXT} primary key, created_at bigint not null, record ${TEXT} not null, sum bigint);
create table secrets (id ${TEXT} primary key, record ${TEXT} not null, sum bigint);
create table submission_keys (
  seq bigint primary key,
  key ${TEXT} not null,
  body ${TEXT} not null,
  task_id ${TEXT} not null,
  at bigint not null,
  sum bigint
);

create table audits (
  seq bigint primary key,
  at bigint not null,
  kind ${TEXT} not null,
  actor ${TEXT},
  action ${TEXT} not null,
  outcome ${TEXT} not null,
  target ${TEXT} not null,
  record ${TEXT} not null
);
create index audits_of_kind on audits (kind, seq);

create table events (
  seq bigint primary key,
  at bigint not null,
  kind ${TEXT} not null,
  task_id ${TEXT},
  node_id ${TEXT},
  caused_by bigint,
  data ${TEXT} not null,
  author ${TEXT},
  hash bytea not null
);
create index events_of_task on events (task_id, seq) where task_id is not null;
create index events_of_node on events (node_id, seq) where node_id is not null;
create index events_of_kind on events (kind, seq);
create table event_chain (
  id bigint primary key check (id = 1),
  head_seq bigint not null,
  head_hash bytea not null,
  pruned_seq bigint not null,
  pruned_hash bytea not null,
  kept_bytes bigint not null
);
insert into event_chain values (1, 0, decode(repeat('00', 32), 'hex'), 0, decode(repeat('00', 32), 'hex'), 0);

create table decisions (
  number bigint primary key,
  at bigint not null,
  kind ${TEXT} not null,
  node_id ${TEXT} not null,
  record ${TEXT} not null
);
create index decisions_of_node on decisions (node_id, number);
create index decisions_of_kind on decisions (kind, number);
create table decision_tasks (
  task_id ${TEXT} not null,
  number bigint not null,
  primary key (task_id, number)
);
create index decision_tasks_by_number on decision_tasks (number);

create table marks (
  id bigint primary key check (id = 1),
  epoch bigint not null,
  next_task_seq bigint not null,
  next_event_seq bigint not null,
  next_decision bigint not null
);
create table epochs (epoch bigint primary key, first_event_seq bigint not null, controller ${TEXT});
create table history (
  id bigint primary key check (id = 1),
  store_id ${TEXT} not null,
  commits bigint not null,
  is_marked bigint not null,
  supersedes ${TEXT},
  recovery_reason ${TEXT},
  recovery_since bigint
);
insert into history values (1, replace(gen_random_uuid()::text, '-', ''), 0, 0, null, null, null);
create table retention_clock (
  id bigint primary key check (id = 1),
  controller_ms bigint not null,
  wall_ms bigint not null,
  event_credit double precision not null,
  decision_credit double precision not null
);
create table retention_marks (
  controller_ms bigint primary key,
  event_seq bigint not null,
  decision_number bigint not null
);

create table store_kind (id bigint primary key check (id = 1), kind ${TEXT} not null);

-- The fence: only the session that holds it commits, and never for an earlier epoch.
create table leader (
  id bigint primary key check (id = 1),
  epoch bigint not null,
  holder ${TEXT} not null,
  sessions integer[] not null,
  since timestamptz not null
);
insert into leader values (1, 0, '', '{}', now());

-- What each commit wrote, by its number; a standby follows it.
create table commit_log (
  seq bigint primary key,
  epoch bigint not null,
  at bigint not null,
  bytes bigint not null,
  batch jsonb not null
);

-- The name that SQLite gives it, so that queries have one form.
create function instr(text, text) returns integer language sql immutable parallel safe
  return strpos($1, $2);
`
