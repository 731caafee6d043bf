/** Files of interrupted uploads. A controller that is killed during an upload leaves the file. */
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** The name contains the receiving process: a living one still needs the file. */
const PARTIAL = /^\.upload-(?:(\d+)-)?[0-9a-f-]{36}$/

export function newPartialName(): string {
  return `.upload-${process.pid}-${randomUUID()}`
}

/** The folders of uploads below the data folder. */
export function uploadFolders(dataDir: string): { readonly traces: string; readonly scenarios: string } {
  const folder = join(dataDir, 'simulations')
  return { traces: join(folder, 'traces'), scenarios: join(folder, 'scenarios') }
}

/**
 * Called before the store opens, because it may need the disk space. Never throws: files that cannot be
 * removed stay.
 * @returns the number of removed files
 */
export function removePartialUploads(dataDir: string): number {
  let removed = 0
  const { traces, scenarios } = uploadFolders(dataDir)
  for (const [folder, isPartial] of [
    [traces, isLeftOver],
    [scenarios, isUnfinished],
  ] as const) {
    if (!existsSync(folder)) continue
    for (const name of readdirSync(folder).filter(isPartial)) {
      try {
        rmSync(join(folder, name), { recursive: true, force: true })
        removed += 1
      } catch {
        // The next start tries again.
      }
    }
  }
  return removed
}

function isLeftOver(name: string): boolean {
  const found = PARTIAL.exec(name)
  if (found === null) return false
  const pid = Number(found[1] ?? 0)
  return pid === 0 || pid === process.pid || !isAlive(pid)
}

function isUnfinished(name: string): boolean {
  return name.endsWith('.new')
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
