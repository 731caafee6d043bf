/** File-system steps that survive a power failure once they have returned. */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'

/** A directory that was just made survives a power failure only when its parent is on disk too. */
export function makeDirectory(directory: string): void {
  const first = firstMissing(directory)
  if (first === null) return
  try {
    // By itself: told to make parents too, mkdir goes on for ever where a folder is there and none can be
    // made in it (/proc).
    mkdirSync(first, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  for (let made = directory; made.length >= first.length; made = dirname(made)) syncDirectory(dirname(made))
}

/** The highest of the directories that are not there; null: all are. */
function firstMissing(directory: string): string | null {
  let first: string | null = null
  for (let each = directory; !existsSync(each); each = dirname(each)) first = each
  return first
}

export function syncDirectory(directory: string): void {
  syncPath(directory, 'r')
}

export function syncFile(path: string): void {
  syncPath(path, 'r+')
}

/** A whole file takes its final name, in place of what had it before. */
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
