/** Ctrl-C, twice: the first asks for an orderly end, the second leaves at once. */
import { codeOfSignal } from './exit-status.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export interface Interrupts {
  /** The exit code that belongs to the first signal; null before it. */
  readonly exitCode: number | null
  /** Listens no more. */
  end(): void
}

/** @param onFirst what an orderly end is; called once */
export function onInterrupt(onFirst: () => void): Interrupts {
  let exitCode: number | null = null
  const listener = (signal: NodeJS.Signals): void => {
    const code = codeOfSignal(signal) ?? 1
    if (exitCode !== null) process.exit(code)
    exitCode = code
    onFirst()
  }
  for (const signal of SIGNALS) process.on(signal, listener)
  return {
    get exitCode() {
      return exitCode
    },
    end: () => SIGNALS.forEach((signal) => process.off(signal, listener)),
  }
}
