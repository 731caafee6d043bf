/**
 * A checksum in each row that affects decisions. SQLite keeps none for its pages, and PostgreSQL none by
 * default: a flipped bit in a task's id loses the task, and no structural check detects it
 * (docs/decisions/0080).
 */
import { crc32 } from 'node:zlib'

/** Columns in the order of summation. Released: rows were written with it. */
export const SUMMED_COLUMNS = {
  tasks: ['seq', 'id', 'state', 'owner', 'node_id', 'name', 'is_final', 'record'],
  nodes: ['id', 'ordinal', 'record'],
  groups: ['id', 'record'],
  config_revisions: ['revision', 'at', 'author', 'fields'],
  tokens: ['id', 'created_at', 'record'],
  secrets: ['id', 'record'],
  submission_keys: ['seq', 'key', 'body', 'task_id', 'at'],
} as const

export type Value = string | number | null

export function rowSum(values: readonly Value[]): number {
  return crc32(JSON.stringify(values))
}

/** The row with its checksum, for a statement that writes both. */
export function summed(values: readonly Value[]): readonly Value[] {
  return [...values, rowSum(values)]
}
