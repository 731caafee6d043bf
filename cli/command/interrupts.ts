/**
 * Handles repeated Ctrl-C: the first requests an orderly end, the second an immediate one where that differs,
 * the next exits.
 */
import { codeOfSignal } from './exit-status.ts'

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
