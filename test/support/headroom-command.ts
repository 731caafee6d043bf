/** The `headroom` command outside the process of the tests, and small inputs for it. */
import { execFile, fork, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll } from 'vitest'
import type { CommandRequest } from './command-host.ts'

const ROOT = join(import.meta.dirname, '../..')
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface CommandOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
}

/**
 * A measured process compiles every module again, which doubles the work of a short command. Code of the
 * measured folders is covered by the tests of those folders; code that only a command reaches counts as not
 * covered.
 */
export const UNMEASURED = { NODE_V8_COVERAGE: '' }

/** The sources load large packages from a few files (preload.mjs). */
export const FROM_SOURCES_ENV: Readonly<Record<string, string>> =
  process.env['HEADROOM_BUNDLED_PACKAGES'] === undefined
    ? {}
    : { NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, 'preload.mjs')).href}` }

/** They serve until a signal, or start other processes: each gets its own process. */
const OWN_PROCESS = new Set(['gateway', 'gpu-server', 'live', 'serve', 'standalone', 'work'])

let host: ChildProcess | null = null
let isHostBusy = false

/**
 * Runs the command to its end, whatever its exit code. Loading the modules takes most of the time of a short
 * command, so commands share a process that has loaded them. A command with input or options of Node, or
 * while another one runs, gets its own. Its stderr is without progress, which only a slow machine prints.
 */
export async function headroom(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  const { env = {}, stdin } = options
  const hasOptions = stdin !== undefined || 'NODE_OPTIONS' in env || OWN_PROCESS.has(args[0] ?? '')
  const ended = await (isHostBusy || hasOptions ? headroomProcess(args, options) : inHost(args, options))
  return { ...ended, stderr: withoutProgress(ended.stderr) }
}

/** A command that takes seconds, as it may on a busy machine, prints how far it is. */
function withoutProgress(stderr: string): string {
  return stderr.replaceAll(/^[^\n]*: \d+ %(?:, [^\n]*)?\n/gm, '')
}

function environmentOf({ env = {} }: CommandOptions): Record<string, string> {
  return { ...(process.env as Record<string, string>), ...UNMEASURED, ...FROM_SOURCES_ENV, ...env }
}

async function inHost(args: readonly string[], options: CommandOptions): Promise<Ended> {
  isHostBusy = true
  try {
    const used = (host ??= startHost())
    return await new Promise<Ended>((resolve, reject) => {
      const onExit = (code: number | null, signal: string | null): void => {
        host = null
        reject(new Error(`headroom ${args.join(' ')}: its process ended with ${signal ?? code}`))
      }
      used.once('exit', onExit)
      used.once('message', (ended: Ended) => {
        used.off('exit', onExit)
        resolve(ended)
      })
      const request: CommandRequest = { args, cwd: options.cwd ?? ROOT, env: environmentOf(options) }
      used.send(request)
    })
  } finally {
    isHostBusy = false
  }
}

function startHost(): ChildProcess {
  const started = fork(join(import.meta.dirname, 'command-host.ts'), {
    execArgv: ['--import', join(ROOT, 'cli/require-node.mjs')],
    env: environmentOf({}),
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  started.unref()
  started.channel?.unref()
  return started
}

/** Runs the command in its own process. */
function headroomProcess(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  const { cwd = ROOT, stdin } = options
  const command = ['--import', join(ROOT, 'cli/require-node.mjs'), '--', join(ROOT, 'cli/main.ts'), ...args]
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      command,
      { cwd, env: environmentOf(options), maxBuffer: MAX_OUTPUT_BYTES },
      (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== 'number')
          reject(new Error(`headroom ${args.join(' ')}: ${error.message}`, { cause: error }))
        else resolve({ code: (error?.code as number | undefined) ?? 0, stdout, stderr })
      },
    )
    if (stdin !== undefined) child.stdin?.end(stdin)
  })
}

/** The same for `--json`; fails with its output if it exits with another code. */
export async function headroomJson<T>(
  args: readonly string[],
  options: CommandOptions & { readonly code?: number } = {},
): Promise<T> {
  const { code, stdout, stderr } = await headroom([...args, '--json'], options)
  if (code !== (options.code ?? 0))
    throw new Error(`headroom ${args.join(' ')} ended with ${code}:\n${stderr}${stdout}`)
  return JSON.parse(stdout) as T
}

/** A folder that is removed after the tests of the file. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-test-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** @returns the path of the file */
export function write(folder: string, name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** Eight GPUs under pressure for half a day: every kind of event occurs, in less than a second. */
export function busyScenario(extra = ''): string {
  return `scenario: busy
version: 1
seed: 42
clock: { until: 6h, drain: true }
fleet:
  - { count: 2, name: "a100-{i}", gpus: 4, gpu: { model: A100-40, vram_mib: 40960, swap: stock-driver } }
config: { default_vram_overcommit_percent: 60 }
workload:
  - { generate: poisson, name: serving, rate_per_hour: 20, gpus: { 1: 0.9, 2: 0.1 },
      vram_mib: { lognormal: { median: 16000, sigma: 0.4 } }, duration: { exponential: { mean: 1h } },
      priority: { 0: 0.1, 2: 0.9 }, noswap: 0.05, activity: serving }
  - { generate: poisson, name: training, rate_per_hour: 2, vram_mib: { uniform: { min: 8000, max: 30000 } },
      duration: { lognormal: { median: 40m, sigma: 0.5 } }, activity: training }
${extra}`
}
