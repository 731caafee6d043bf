/**
 * Ctrl-C, again and again: the first asks for an orderly end, the second for one at once where there is a
 * difference, the next leaves.
 */
import { codeOfSignal } from './exit-status.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export interface Interrupts {
  /** The exit code that belongs to the first signal; null before it. */
  readonly exitCode: number | null
  /** Listens no more. */
  end(): void
}

/**
 * @param onFirst what an orderly end is; called once
 * @param onSecond an end at once; called once. Left out: the second signal leaves.
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
