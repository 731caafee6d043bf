/** File-system operations that survive a power failure once they have returned. */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'

/** A new directory survives a power failure only if its parent is synced too. */
export function makeDirectory(directory: string): void {
  const first = firstMissing(directory)
  if (first === null) return
  try {
    // Not recursive: recursive mkdir never returns in an existing folder where none can be created (/proc).
    mkdirSync(first, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  for (let made = directory; made.length >= first.length; made = dirname(made)) syncDirectory(dirname(made))
}

/** The highest missing directory; null: all exist. */
function firstMissing(directory: string): string | null {
  let first: string | null = null
  for (let each = directory; !existsSync(each); each = dirname(each)) first = each
  return first
}

export function syncDirectory(directory: string): void {
  syncPath(directory, 'r')
}

function syncFile(path: string): void {
  syncPath(path, 'r+')
}

/** Moves a complete file to its final name and replaces an existing one. */
export function publishFile(from: string, to: string): void {
  syncFile(from)
  renameSync(from, to)
  syncDirectory(dirname(to))
}

function syncPath(path: string, flags: string): void {
  const handle = openSync(path, flags)
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
