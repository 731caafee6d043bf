/** File-system steps that survive a power failure once they have returned. */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'

/** A directory that was just made survives a power failure only when its parent is on disk too. */
export function makeDirectory(directory: string): void {
  const firstMade = mkdirSync(directory, { recursive: true, mode: 0o700 })
  if (firstMade === undefined) return
  for (let made = directory; made.length >= firstMade.length; made = dirname(made)) syncDirectory(dirname(made))
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
