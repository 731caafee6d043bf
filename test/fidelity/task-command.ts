/** What a real task of a fidelity run executes. */
import { join } from 'node:path'
import type { Phases } from './real-run.ts'

const WORKER = join(import.meta.dirname, 'worker.mjs')

/** @param note the file in which it says that it runs @param phases busy and idle in turn, ms */
export function taskCommand(note: string, phases: Phases): readonly string[] {
  const steps = phases.flatMap(([busyMs, idleMs]) => [
    `busy:${busyMs}`,
    ...(idleMs > 0 ? [`idle:${idleMs}`] : []),
  ])
  return [process.execPath, WORKER, note, ...steps]
}
