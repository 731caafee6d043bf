/**
 * The functions of the schema. A commit is one call: the check of the fence, all records and the entry of the
 * commit log are one statement, so that no row lock outlives a round trip. They are created again at every
 * start, so that they always fit the program.
 */
import { MAX_CONFIG_REVISIONS, MAX_EPOCH_RECORDS } from '../../ports/store.ts'

/** Listeners are told the number of each entry of the commit log. */
export const COMMIT_CHANNEL = 'headroom_commits'

/**
 * Takes the fence. Sessions of the previous holder are ended first, because one of them may be inside a
 * commit that holds the row.
 */
export const CLAIM = `
create or replace function headroom.claim(p_holder text) returns void language plpgsql
set search_path = headroom, pg_temp as $$
begin
  perform pg_terminate_backend(activity.pid)
    from leader, pg_stat_activity activity
    where activity.pid = any(leader.sessions) and activity.pid <> pg_backend_pid()
      and activity.datname = current_database() and activity.application_name like 'headroom writer%';
  -- Changes of files by the previous holder end first.
  perform 1 from leader where id = 1 for update;
  update leader set holder = p_holder, sessions = array[pg_backend_pid()], since = clock_timestamp(),
    epoch = greatest(epoch, coalesce((select marks.epoch from marks), 0));
end
$$;`

/** The row lock is kept until the commit: a takeover waits for it, and is seen after it. */
export const FENCE = `
  select * into v_leader from leader where id = 1 for no key update;
  if v_leader.holder is distinct from p_holder or p_epoch < v_leader.epoch then
    raise exception 'fenced: epoch % of %, now % of %', p_epoch, p_holder, v_leader.epoch, v_leader.holder
      using errcode = 'HR001';
  end if;
  if p_epoch > v_leader.epoch then
    update leader set epoch = p_epoch where id = 1;
  end if;`

/** One statement per table; absent keys change nothing. Deletions come first, as in the batch. */
const RECORDS = `
  if p_batch ? 'tasks' then
    insert into tasks (seq, id, state, owner, node_id, name, is_final, record, sum)
    select (r->>0)::bigint, r->>1, r->>2, r->>3, r->>4, r->>5, (r->>6)::bigint, r->>7, (r->>8)::bigint
    from jsonb_array_elements(p_batch->'tasks') r
    on conflict (id) do update set state = excluded.state, owner = excluded.owner,
      node_id = excluded.node_id, name = excluded.name, is_final = excluded.is_final,
      record = excluded.record, sum = excluded.sum;
  end if;
  if p_batch ? 'forgotten_nodes' then
    delete from nodes where id in (select jsonb_array_elements_text(p_batch->'forgotten_nodes'));
  end if;
  if p_batch ? 'nodes' then
    insert into nodes (id, ordinal, record, sum)
    select r->>0, (r->>1)::bigint, r->>2, (r->>3)::bigint from jsonb_array_elements(p_batch->'nodes') r
    on conflict (id) do update set ordinal = excluded.ordinal, record = excluded.record,
      sum = excluded.sum;
  end if;
  if p_batch ? 'deleted_groups' then
    delete from groups where id in (select jsonb_array_elements_text(p_batch->'deleted_groups'));
  end if;
  if p_batch ? 'groups' then
    insert into groups (id, record, sum)
    select r->>0, r->>1, (r->>2)::bigint from jsonb_array_elements(p_batch->'groups') r
    on conflict (id) do update set record = excluded.record, sum = excluded.sum;
  end if;
  if p_batch ? 'configs' then
    insert into config_revisions (revision, at, author, fields, sum)
    select (r->>0)::bigint, (r->>1)::bigint, r->>2, r->>3, (r->>4)::bigint
    from jsonb_array_elements(p_batch->'configs') r
    on conflict (revision) do update set at = excluded.at, author = excluded.author,
      fields = excluded.fields, sum = excluded.sum;
    delete from config_revisions where revision <=
      (select max((r->>0)::bigint) - ${MAX_CONFIG_REVISIONS} from jsonb_array_elements(p_batch->'configs') r);
  end if;
  if p_batch ? 'keys' then
    insert into submission_keys (seq, key, body, task_id, at, sum)
    select (r->>0)::bigint, r->>1, r->>2, r->>3, (r->>4)::bigint, (r->>5)::bigint
    from jsonb_array_elements(p_batch->'keys') r
    on conflict (seq) do update set key = excluded.key, body = excluded.body,
      task_id = excluded.task_id, at = excluded.at, sum = excluded.sum;
  end if;
  if p_batch ? 'keys_kept_from' then
    delete from submission_keys where seq < (p_batch->>'keys_kept_from')::bigint;
  end if;`

const ACCESS = `
  if p_batch ? 'deleted_secrets' then
    delete from secrets where id in (select jsonb_array_elements_text(p_batch->'deleted_secrets'));
  end if;
  if p_batch ? 'secrets' then
    insert into secrets (id, record, sum)
    select r->>0, r->>1, (r->>2)::bigint from jsonb_array_elements(p_batch->'secrets') r
    on conflict (id) do update set record = excluded.record, sum = excluded.sum;
  end if;
  if p_batch ? 'revoked_tokens' then
    delete from tokens where id in (select jsonb_array_elements_text(p_batch->'revoked_tokens'));
  end if;
  if p_batch ? 'tokens' then
    insert into tokens (id, created_at, record, sum)
    select r->>0, (r->>1)::bigint, r->>2, (r->>3)::bigint from jsonb_array_elements(p_batch->'tokens') r
    on conflict (id) do update set created_at = excluded.created_at, record = excluded.record,
      sum = excluded.sum;
  end if;
  if p_batch ? 'audits' then
    insert into audits (seq, at, kind, actor, action, outcome, target, record)
    select (r->>0)::bigint, (r->>1)::bigint, r->>2, r->>3, r->>4, r->>5, r->>6, r->>7
    from jsonb_array_elements(p_batch->'audits') r
    on conflict (seq) do update set at = excluded.at, kind = excluded.kind, actor = excluded.actor,
      action = excluded.action, outcome = excluded.outcome, target = excluded.target,
      record = excluded.record;
  end if;
  if p_batch ? 'audits_kept' then
    delete from audits using (
      select key as kind, (select seq from audits a where a.kind = key order by seq desc
        limit 1 offset value::bigint - 1) as first_seq
      from jsonb_each_text(p_batch->'audits_kept')
    ) kept where audits.kind = kept.kind and audits.seq < kept.first_seq;
  end if;`

/** The chain must end where the writer believes: another writer would break it. */
const HISTORY = `
  if p_batch ? 'events' then
    insert into events (seq, at, kind, task_id, node_id, caused_by, author, data, hash)
    select (r->>0)::bigint, (r->>1)::bigint, r->>2, r->>3, r->>4, (r->>5)::bigint, r->>6, r->>7,
      decode(r->>8, 'hex')
    from jsonb_array_elements(p_batch->'events') r;
  end if;
  if p_batch ? 'chain' then
    update event_chain set head_seq = (p_batch->'chain'->>1)::bigint,
      head_hash = decode(p_batch->'chain'->>2, 'hex'), pruned_seq = (p_batch->'chain'->>3)::bigint,
      pruned_hash = decode(p_batch->'chain'->>4, 'hex'), kept_bytes = (p_batch->'chain'->>5)::bigint
    where head_seq = (p_batch->'chain'->>0)::bigint;
    if not found then
      raise exception 'the chain of events does not end with event %', p_batch->'chain'->>0
        using errcode = 'HR002';
    end if;
  end if;
  if p_batch ? 'events_removed' then
    delete from events where seq <= (p_batch->>'events_removed')::bigint;
  end if;
  if p_batch ? 'decisions' then
    insert into decisions (number, at, kind, node_id, record)
    select (r->>0)::bigint, (r->>1)::bigint, r->>2, r->>3, r->>4
    from jsonb_array_elements(p_batch->'decisions') r;
    insert into decision_tasks (task_id, number)
    select task_id, (r->>0)::bigint
    from jsonb_array_elements(p_batch->'decisions') r, jsonb_array_elements_text(r->5) task_id;
  end if;
  if p_batch ? 'decisions_removed' then
    delete from decisions where number <= (p_batch->>'decisions_removed')::bigint;
    delete from decision_tasks where number <= (p_batch->>'decisions_removed')::bigint;
  end if;
  insert into marks (id, epoch, next_task_seq, next_event_seq, next_decision)
  select 1, (m->>0)::bigint, (m->>1)::bigint, (m->>2)::bigint, (m->>3)::bigint
  from (select p_batch->'marks' as m) as given
  on conflict (id) do update set epoch = excluded.epoch, next_task_seq = excluded.next_task_seq,
    next_event_seq = excluded.next_event_seq, next_decision = excluded.next_decision;
  if p_batch ? 'epochs' then
    insert into epochs (epoch, first_event_seq, controller)
    select (r->>0)::bigint, (r->>1)::bigint, r->>2 from jsonb_array_elements(p_batch->'epochs') r;
    delete from epochs where epoch <=
      (select epoch from epochs order by epoch desc limit 1 offset ${MAX_EPOCH_RECORDS});
  end if;
  if p_batch ? 'clock' then
    update retention_clock set controller_ms = (p_batch->'clock'->>0)::bigint,
      wall_ms = (p_batch->'clock'->>1)::bigint,
      event_credit = (p_batch->'clock'->>2)::double precision,
      decision_credit = (p_batch->'clock'->>3)::double precision;
  end if;
  if p_batch ? 'age_mark' then
    insert into retention_marks (controller_ms, event_seq, decision_number)
    select (m->>0)::bigint, (m->>1)::bigint, (m->>2)::bigint from (select p_batch->'age_mark' as m) as given
    on conflict (controller_ms) do update set event_seq = excluded.event_seq,
      decision_number = excluded.decision_number;
  end if;
  if p_batch ? 'age_marks_before' then
    delete from retention_marks where controller_ms < (p_batch->>'age_marks_before')::bigint;
  end if;
  update history set commits = commits + 1 returning commits into v_commits;
  if p_batch ? 'ends_recovery' then
    update history set recovery_reason = null, recovery_since = null;
  end if;`

const LOG = `
  insert into commit_log (seq, epoch, at, bytes, batch)
    values (v_commits, p_epoch, p_at, octet_length(p_text), p_batch);
  if p_batch ? 'log_kept_from' then
    delete from commit_log where seq < (p_batch->>'log_kept_from')::bigint;
  end if;
  perform pg_notify('${COMMIT_CHANNEL}', v_commits::text);
  return v_commits;`

/** @param fence replaced in tests, which must notice its absence */
export function commitFunction(fence = FENCE): string {
  return `
create or replace function headroom.commit_batch(p_epoch bigint, p_holder text, p_at bigint, p_text text)
returns bigint language plpgsql set search_path = headroom, pg_temp as $$
declare
  v_leader leader%rowtype;
  p_batch jsonb := p_text::jsonb;
  v_commits bigint;
begin
${fence}
${RECORDS}
${ACCESS}
${HISTORY}
${LOG}
end
$$;`
}

export const FUNCTIONS = [CLAIM, commitFunction()]
