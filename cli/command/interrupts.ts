/**
 * Handles repeated Ctrl-C: the first requests an orderly end, the second an immediate one where that differs,
 * the next exits.
 */
import { constants } from 'node:os'
import type { Task } from '../../clients/typescript/client.ts'
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export interface Interrupts {
  /** The exit code of the first signal; null before it. */
  readonly exitCode: number | null
  /** Stops listening. */
  end(): void
}

/**
 * @param onFirst starts an orderly end; called once
 * @param onSecond ends at once; called once. Absent: the second signal exits.
 */
export function onInterrupt(onFirst: () => void, onSecond?: () => void): Interrupts {
  let exitCode: number | null = null
  let isHurried = onSecond === undefined
  const listener = (signal: NodeJS.Signals): void => {
    const code = codeOfSignal(signal) ?? 1
    if (exitCode === null) {
      exitCode = code
      return onFirst()
    }
    if (isHurried) process.exit(code)
    isHurried = true
    onSecond?.()
  }
  for (const signal of SIGNALS) process.on(signal, listener)
  return {
    get exitCode() {
      return exitCode
    },
    end: () => SIGNALS.forEach((signal) => process.off(signal, listener)),
  }
}

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

/** Runs the work until it ends, or SIGINT or SIGTERM aborts its signal. */
export async function untilInterrupted(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const end = new AbortController()
  const stop = (): void => end.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    await work(end.signal)
  } catch (error) {
    if (!end.signal.aborted) throw error
  } finally {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
}
