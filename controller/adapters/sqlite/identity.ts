/**
 * A mark beside the file that says: there is a store here. When the file is gone and the mark is not,
 * something was lost, and a controller that began anew would forget every task and give up every node without
 * a word.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreFault } from '../../ports/store.ts'
import { syncDirectory } from './files.ts'

export function markOf(path: string): string {
  return `${path}.id`
}

/**
 * Call it where there is no store yet.
 * @param isExpected somebody has said that there must be one.
 * @throws StoreFault when there was one before, or must be one.
 */
export function requireNoStoreBefore(path: string, isExpected: boolean): void {
  const how = `restore a backup (headroom restore), mount its volume, or, to begin anew,`
  if (existsSync(markOf(path)))
    throw new StoreFault(
      `${path} is gone or empty, and there was a store before: ${how} remove ${markOf(path)}`,
    )
  if (isExpected)
    throw new StoreFault(
      `there is no store at ${path}, and CONTROLLER_EXPECT_STORE says that there is one: ${how} unset it`,
    )
}

/** There is a store from now on. Durable when it returns; what is there already stays. */
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
