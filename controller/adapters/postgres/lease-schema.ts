/**
 * Tables and functions of the lease. They have no part in the safety of the store, so they are not a step
 * of its schema: they are created when they are missing.
 */

/** Tables besides those of base-schema.ts. */
export const LEASE_TABLES = ['lease', 'controllers'] as const

/** Standbys are told that the leader has resigned, or answers requests. */
export const LEADER_CHANNEL = 'headroom_leader'

const TEXT = 'text collate "C"'

const TABLES = `
create table if not exists headroom.lease (
  id bigint primary key check (id = 1),
  beat bigint not null,
  name ${TEXT} not null,
  url ${TEXT} not null,
  heir ${TEXT},
  is_resigned bigint not null,
  takeovers bigint not null
);
insert into headroom.lease values (1, 0, '', '', null, 0, 0) on conflict (id) do nothing;
alter table headroom.lease add column if not exists is_asked bigint not null default 0;
alter table headroom.lease add column if not exists asked_heir ${TEXT};
alter table headroom.lease add column if not exists key_id ${TEXT};
alter table headroom.lease add column if not exists seal ${TEXT} not null default '';
create table if not exists headroom.controllers (
  name ${TEXT} primary key,
  url ${TEXT} not null,
  version ${TEXT} not null,
  may_lead bigint not null,
  lag_ms bigint,
  seen timestamptz not null
);`

/** Fence of changes other than commits. Commits of the same holder do not wait for it; a takeover does. */
export const TERM_FENCE = `
  perform 1 from leader where id = 1 and holder = p_holder for key share;
  if not found then
    raise exception 'fenced: another controller leads' using errcode = 'HR001';
  end if;`

/** Begins a term: sessions of the leader before are ended, and the epoch rises. */
export const LEAD = `
create or replace function headroom.lead(p_holder text, p_name text, p_url text) returns bigint
language plpgsql set search_path = headroom, pg_temp as $$
declare
  v_epoch bigint;
begin
  perform claim(p_holder);
  update leader set epoch = epoch + 1 where id = 1 returning epoch into v_epoch;
  update lease set beat = beat + 1, takeovers = takeovers + 1, name = p_name, url = p_url, heir = null,
    is_resigned = 0, is_asked = 0, asked_heir = null;
  return v_epoch;
end
$$;`

/** It has given no sign of life since it was observed. */
export const STILL_SILENT = 'sign_of_life() = p_sign'

/**
 * Ends the sessions of a silent leader.
 * @param condition replaced in tests, which must notice its absence
 */
export function deposeFunction(condition = STILL_SILENT): string {
  return `
create or replace function headroom.depose(p_sign text) returns void language plpgsql
set search_path = headroom, pg_temp as $$
begin
  perform pg_terminate_backend(activity.pid)
    from leader, pg_stat_activity activity
    where ${condition}
      and activity.pid = any(leader.sessions) and activity.pid <> pg_backend_pid()
      and activity.datname = current_database() and activity.application_name like 'headroom writer%';
end
$$;`
}

export const SIGN = `
create or replace function headroom.sign_of_life() returns text language sql stable
set search_path = headroom, pg_temp as $$
  select concat_ws('/', holder, epoch, commits, beat) from leader, history, lease
$$;`

/**
 * A beat is refused as a commit is: so an idle leader learns that it was replaced. Returns the wanted next
 * leader if an operator asks it to resign: empty for any, null: it is not asked.
 * @param fence replaced in tests, which must notice its absence
 */
export function beatFunction(fence = TERM_FENCE): string {
  return `
drop function if exists headroom.beat(text);
create function headroom.beat(p_holder text) returns text language plpgsql
set search_path = headroom, pg_temp as $$
begin
${fence}
  update lease set beat = beat + 1;
  return (select coalesce(asked_heir, '') from lease where is_asked = 1);
end
$$;`
}

/** @param fence replaced in tests, which must notice its absence */
export function resignFunction(fence = TERM_FENCE): string {
  return `
create or replace function headroom.resign(p_holder text, p_heir text) returns void language plpgsql
set search_path = headroom, pg_temp as $$
begin
${fence}
  update lease set heir = p_heir, is_resigned = 1;
  update leader set holder = '', sessions = '{}' where id = 1;
end
$$;`
}

/** @param fence replaced in tests, which must notice its absence */
export function serveFunction(fence = TERM_FENCE): string {
  return `
create or replace function headroom.serve_at(p_holder text, p_url text, p_seal text) returns void
language plpgsql set search_path = headroom, pg_temp as $$
begin
${fence}
  update lease set url = p_url, seal = p_seal;
  perform pg_notify('${LEADER_CHANNEL}', '');
end
$$;`
}

/** A standby tells that it is there. */
const ANNOUNCE = `
create or replace function headroom.announce(p_name text, p_url text, p_version text, p_may_lead bigint)
returns void language sql set search_path = headroom, pg_temp as $$
  insert into controllers (name, url, version, may_lead, seen)
    values (p_name, p_url, p_version, p_may_lead, clock_timestamp())
  on conflict (name) do update set url = excluded.url, version = excluded.version,
    may_lead = excluded.may_lead, seen = excluded.seen
$$;`

export const LEASE_SCHEMA = [
  ...[TABLES, SIGN, LEAD, deposeFunction(), beatFunction()],
  ...[resignFunction(), serveFunction(), ANNOUNCE],
]
