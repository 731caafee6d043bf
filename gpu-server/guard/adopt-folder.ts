import { setTimeout as delay } from 'node:timers/promises'
import { GuardFault } from './guard-fault.ts'
import {
  claimFolder,
  readExit,
  readGuard,
  readStarted,
  readTask,
  removeFolder,
  type FolderTask,
} from './guard-folder.ts'
import { bootId } from './guard-lease.ts'
import type { HeldGuard } from './held-guard.ts'
import { isAlive, type ProcessKey } from './process-table.ts'

const BEGIN_LIMIT_MS = 10_000
const POLL_INTERVAL_MS = 20
const SWEEP_LIMIT_MS = 30_000

/**
 * Takes over the folder of an earlier server: attaches to a living guard; after a dead guard, kills
 * everything that is left.
 * @returns null for a folder in which nothing ran, which is removed
 * Rejects with GuardFault when something of the task cannot be killed.
 */
export async function adoptFolder(
  folder: string,
  hold: (task: FolderTask) => HeldGuard,
): Promise<HeldGuard | null> {
  const task = await readTask(folder)
  if (task === null) {
    await removeFolder(folder) // its server died before it launched a guard
    return null
  }
  const held = hold(task)
  const isNeverRun = claimFolder(folder)
  const guard = isNeverRun ? null : await livingGuard(folder)
  if (guard !== null && (await attachTo(held, guard))) return held
  const hasRun = await hasTrace(folder)
  await held.settleOnce(SWEEP_LIMIT_MS)
  if (hasRun) return held
  await removeFolder(folder) // a guard that is late finds no folder, and runs nothing
  return null
}

/** A guard records the start on disk before the command runs. */
async function hasTrace(folder: string): Promise<boolean> {
  return (await readStarted(folder)) !== null || (await readExit(folder)) !== null
}

async function livingGuard(folder: string): Promise<ProcessKey | null> {
  const found = await readGuard(folder)
  const guard = found?.bootId === bootId() ? found.guard : null
  return guard !== null && isAlive(guard) ? guard : null
}

/** A living guard that does not answer enforces no deadline either: it is killed together with its task. */
async function attachTo(held: HeldGuard, guard: ProcessKey): Promise<boolean> {
  const deadline = performance.now() + BEGIN_LIMIT_MS
  while (isAlive(guard)) {
    try {
      await held.attach(guard.pid)
      return true
    } catch (error) {
      if ((await readExit(held.folder)) !== null) return false
      if (performance.now() > deadline || error instanceof GuardFault) killGuard(guard)
    }
    await delay(POLL_INTERVAL_MS)
  }
  return false
}

function killGuard(guard: ProcessKey): void {
  if (isAlive(guard)) process.kill(guard.pid, 'SIGKILL')
}
