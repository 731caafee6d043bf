/**
 * Uploaded files of tasks in the database. SQLite's controller has them in a folder, so they are not a step
 * of the schema: the table is created when it is missing. Changes are fenced like commits, and by the same
 * row: a takeover waits for those that are in progress, and later ones of the former leader are refused.
 */

import { TERM_FENCE } from './lease-schema.ts'

/** Tables besides those of base-schema.ts. */
export const FILES_TABLES = ['uploaded_files'] as const

const TEXT = 'text collate "C"'

/** `owner` is JSON. Contents are stored uncompressed, so that a part of one is read without the rest. */
const TABLE = `
create table if not exists headroom.uploaded_files (
  owner ${TEXT} not null,
  sha256 ${TEXT} not null,
  bytes bigint not null,
  at bigint not null,
  content bytea not null,
  primary key (owner, sha256)
);
alter table headroom.uploaded_files alter column content set storage external;`

/** A takeover ends this session too. The first of `sessions` is that of the commits. */
const JOIN = `
create or replace function headroom.join_term(p_holder text) returns void language plpgsql
set search_path = headroom, pg_temp as $$
begin
  update leader set sessions = array[sessions[1], pg_backend_pid()] where id = 1 and holder = p_holder;
  if not found then
    raise exception 'fenced: another controller leads' using errcode = 'HR001';
  end if;
end
$$;`

/** @param fence replaced in tests, which must notice its absence */
export function fileFunctions(fence = TERM_FENCE): readonly string[] {
  return [
    `
create or replace function headroom.put_file(
  p_holder text, p_owner text, p_sha256 text, p_at bigint, p_content bytea
) returns void language plpgsql set search_path = headroom, pg_temp as $$
begin
${fence}
  insert into uploaded_files (owner, sha256, bytes, at, content)
    values (p_owner, p_sha256, octet_length(p_content), p_at, p_content)
  on conflict (owner, sha256) do nothing;
end
$$;`,
    `
create or replace function headroom.remove_files(p_holder text, p_owner text, p_sha256s text[])
returns void language plpgsql set search_path = headroom, pg_temp as $$
begin
${fence}
  delete from uploaded_files where owner = p_owner and sha256 = any(p_sha256s);
end
$$;`,
  ]
}

export const FILES_SCHEMA = [TABLE, JOIN, ...fileFunctions()]
