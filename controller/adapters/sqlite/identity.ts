/**
 * A marker file next to the store. If the store is gone and the marker is not, data was lost: a controller
 * that started from nothing would forget every task and give up every node silently.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreFault } from '../../ports/store.ts'
import { syncDirectory } from '../sql/files.ts'

export function markOf(path: string): string {
  return `${path}.id`
}

/**
 * Call if no store exists yet.
 * @param isExpected the operator requires a store
 * @throws StoreFault if there was one before, or one is required
 */
export function requireNoStoreBefore(path: string, isExpected: boolean): void {
  const how = `restore a backup (headroom restore), mount its volume, or, to begin with an empty store,`
  if (existsSync(markOf(path)))
    throw new StoreFault(
      `${path} is missing or empty, but a store existed before: ${how} remove ${markOf(path)}`,
    )
  if (isExpected)
    throw new StoreFault(`there is no store at ${path}, but CONTROLLER_EXPECT_STORE is set: ${how} unset it`)
}

/** Records that a store exists. Durable when it returns; an existing marker stays. */
export function markStore(path: string, at: Date): void {
  if (existsSync(markOf(path))) return
  const handle = openSync(markOf(path), 'w', 0o600)
  try {
    writeSync(handle, `${JSON.stringify({ store: randomUUID(), marked_at: at.toISOString() })}\n`)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  syncDirectory(dirname(path))
}
