/** The exit code of `headroom run`: the task's, as a shell reports it. */
import { constants } from 'node:os'
import type { Task } from '../../clients/typescript/client.ts'
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'

/** 128 + signal number; null for an unknown signal. */
export function codeOfSignal(name: string): number | null {
  const number = (constants.signals as Readonly<Record<string, number | undefined>>)[name]
  return number === undefined ? null : 128 + number
}

/**
 * Its own code; 128 + signal when a signal ended it; 1 for any other end (lost, cancelled by another client).
 */
export function exitCodeOfTask(task: Pick<Task, 'state' | 'exit_code' | 'end_reason'>): number {
  if (task.exit_code !== null)
    return task.exit_code & 0xff || (task.state === 'completed' ? EXIT_OK : EXIT_FAILED)
  if (task.state === 'completed') return EXIT_OK
  const signal = /\bSIG[A-Z0-9]+\b/.exec(task.end_reason ?? '')?.[0]
  return (signal === undefined ? null : codeOfSignal(signal)) ?? EXIT_FAILED
}
