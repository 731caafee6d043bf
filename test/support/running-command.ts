/** A `headroom` command that runs in a separate process until it is ended. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { afterEachFile } from './endings.ts'
import { FROM_SOURCES_ENV, UNMEASURED } from './headroom-command.ts'

const ROOT = join(import.meta.dirname, '../..')
const SAYS_WITHIN_MS = 100_000

/** A test that fails half-way leaves no process behind. */
const started = new Set<ChildProcess>()
afterEachFile(() => {
  started.forEach((child) => child.kill('SIGKILL'))
  started.clear()
})

export interface RunningCommand {
  readonly process: ChildProcess
  /** All its output, stdout and stderr in order of arrival. */
  output(): string
  /** Resolves with the first match in its output; rejects if it ends before or half a minute passes. */
  says(pattern: RegExp): Promise<RegExpExecArray>
  /** Resolves with exit code or signal. */
  readonly ended: Promise<number | NodeJS.Signals | null>
}

/** Options of Node to run the command from the sources. */
const FROM_SOURCES: readonly string[] = [
  '--import',
  join(ROOT, 'cli/require-node.mjs'),
  '--',
  join(ROOT, 'cli/main.ts'),
]

const LAST_WORDS_MS = 5_000

export function startHeadroom(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  program = FROM_SOURCES,
): RunningCommand {
  const child = spawn(process.execPath, [...program, ...args], {
    cwd: ROOT,
    env: { ...process.env, ...UNMEASURED, ...(program === FROM_SOURCES ? FROM_SOURCES_ENV : {}), ...env },
  })
  started.add(child)
  let output = ''
  const readers = new Set<() => void>()
  const read = (chunk: Buffer): void => {
    output += chunk.toString()
    for (const reader of readers) reader()
  }
  child.stdout.on('data', read)
  child.stderr.on('data', read)
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once('exit', (code, signal) => {
      const end = (): void => resolve(code ?? signal)
      // Its last words may still be on their way; a child of it may hold the streams open.
      child.once('close', end)
      setTimeout(end, LAST_WORDS_MS).unref()
    }),
  )
  const says = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const end = (finish: () => void): void => {
        readers.delete(look)
        clearTimeout(timer)
        finish()
      }
      const fail = (why: string): void =>
        end(() =>
          reject(new Error(`headroom ${args.join(' ')} ${why} before it said ${String(pattern)}: ${output}`)),
        )
      const look = (): void => {
        const match = pattern.exec(output)
        if (match !== null) end(() => resolve(match))
      }
      const timer = setTimeout(() => fail(`took ${SAYS_WITHIN_MS / 1000} s`), SAYS_WITHIN_MS)
      readers.add(look)
      void ended.then((how) => readers.has(look) && fail(`ended with ${how}`))
      look()
    })
  return { process: child, output: () => output, says, ended }
}
