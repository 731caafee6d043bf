/** `headroom serve` in a separate process: starts it, sends requests, and ends it in every possible way. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEachFile } from './endings.ts'
import { FROM_SOURCES_ENV, UNMEASURED } from './headroom-command.ts'

const ROOT = join(import.meta.dirname, '../..')
/** A start is slow while other tests run; a start that hangs still ends. */
const START_WITHIN_MS = 100_000
const PRESENT_WITHIN_MS = 2_000
const LOOK_EVERY_MS = 100

/** A test that fails half-way leaves no controller behind. */
const started = new Set<ChildProcess>()
afterEachFile(() => {
  started.forEach((child) => child.kill('SIGKILL'))
  started.clear()
})

export interface Served {
  readonly url: string
  readonly process: ChildProcess
  /** Resolves with exit code or signal. */
  readonly ended: Promise<number | NodeJS.Signals | null>
  readonly output: () => string
}

/**
 * The fleet of the demonstration without its first two hours. A new store otherwise starts two hours ago, and
 * the catch-up costs 8 s of CPU per controller.
 */
export const WITHOUT_HISTORY = {
  CONTROLLER_SIMULATED_FLEET: join(ROOT, 'scenarios/live-demo.scenario.yaml'),
}

/** Options of Node to run the command from the sources. */
const FROM_SOURCES: readonly string[] = [
  '--import',
  join(ROOT, 'cli/require-node.mjs'),
  join(ROOT, 'cli/main.ts'),
]

/** Resolves once it listens; rejects with its output if it ends before. */
export function serve(
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
  program = FROM_SOURCES,
): Promise<Served> {
  const child = spawn(process.execPath, [...program, 'serve'], {
    cwd: ROOT,
    env: {
      ...process.env,
      ...UNMEASURED,
      ...(program === FROM_SOURCES ? FROM_SOURCES_ENV : {}),
      CONTROLLER_HTTP_PORT: '0',
      CONTROLLER_DATA_DIR: dataDir,
      LOG_LEVEL: 'error',
      ...env,
    },
  })
  started.add(child)
  let output = ''
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal)),
  )
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), START_WITHIN_MS)
    void ended.then((how) => {
      clearTimeout(timer)
      reject(new Error(`headroom serve ended with ${how}: ${output}`))
    })
    const read = (chunk: Buffer): void => {
      output += chunk.toString()
      const url = /http:\/\/[\d.]+:\d+/.exec(output)?.[0]
      if (url === undefined) return
      clearTimeout(timer)
      resolve({ url, process: child, ended, output: () => output })
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
  })
}

/** A simulated fleet that starts in the past catches up with the present; until then every list grows. */
export async function untilPresent(url: string): Promise<void> {
  for (;;) {
    const { at } = await getJson<{ readonly at: string }>(`${url}/api/v1/summary`)
    if (Date.parse(at) > Date.now() - PRESENT_WITHIN_MS) return
    await pause(LOOK_EVERY_MS)
  }
}

export async function putJson(
  url: string,
  body: unknown,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const answer = await fetch(url, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: answer.status, body: await answer.json() }
}

export async function getJson<T>(url: string): Promise<T> {
  return (await (await fetch(url)).json()) as T
}
