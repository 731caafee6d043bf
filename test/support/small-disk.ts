/** A file system of a few MiB in memory, mounted on a folder, that a test fills. Only root may mount. */
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const FILLER = 'filler'
const BLOCK = Buffer.alloc(65_536)

/** @returns null: it is mounted; otherwise why no file system can be mounted here */
export function mountSmallDisk(folder: string, mib: number): string | null {
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'headroom-test', folder], {
    encoding: 'utf8',
  })
  return mounted.status === 0
    ? null
    : `no file system can be mounted here: ${mounted.error?.message ?? mounted.stderr.trim()}`
}

export function unmountSmallDisk(folder: string): void {
  spawnSync('umount', ['-l', folder])
}

/** Leaves no free block. */
export function fillDisk(folder: string): void {
  const file = openSync(join(folder, FILLER), 'w')
  try {
    for (;;) writeSync(file, BLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    closeSync(file)
  }
}

export function freeDisk(folder: string): void {
  rmSync(join(folder, FILLER))
}
