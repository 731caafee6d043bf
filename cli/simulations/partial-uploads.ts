/**
 * What an upload that did not end has left. A controller that is killed while it receives one leaves the
 * whole of it.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** The process that receives it is part of the name: one that runs still needs it. */
const PARTIAL = /^\.upload-(?:(\d+)-)?[0-9a-f-]{36}$/

export function newPartialName(): string {
  return `.upload-${process.pid}-${randomUUID()}`
}

/** The folders below the data folder where uploads are kept. */
export function uploadFolders(dataDir: string): { readonly traces: string; readonly scenarios: string } {
  const folder = join(dataDir, 'simulations')
  return { traces: join(folder, 'traces'), scenarios: join(folder, 'scenarios') }
}

/**
 * Before the store opens: the room may be what it lacks. Throws nothing: what cannot be removed stays.
 * @returns how many were removed
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
