/** The command of a real task in a fidelity run. */
import { join } from 'node:path'
import type { Phases } from './real-run.ts'

const WORKER = join(import.meta.dirname, 'worker.mjs')

/** @param note the file to which it writes that it runs @param phases alternating busy and idle times, ms */
export function taskCommand(note: string, phases: Phases): readonly string[] {
  const steps = phases.flatMap(([busyMs, idleMs]) => [
    `busy:${busyMs}`,
    ...(idleMs > 0 ? [`idle:${idleMs}`] : []),
  ])
  return [process.execPath, WORKER, note, ...steps]
}
