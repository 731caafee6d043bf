/**
 * `replay_w1_cpu_s`: the complete process of `headroom sim replay` over a public trace, including its start.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { median } from './stopwatch.ts'
import type { Reading } from './targets.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CLI = 'cli/main.ts'
const CSV = 'data/w1_openb_gpu_pods.csv'
/** The smallest fleet for which the oracles know the trace (vectors/fifo-oracles.json). */
const FLEET = '--nodes 1 --gpus-per-node 64 --vram-mib 40960 --overcommit 0 --strategy fifo'.split(' ')
const TASKS = 7_064
const RUNS = 5
/** The unit of CPU time in /proc on Linux. */
const TICKS_A_SECOND = 100

export function measureReplayW1(): Promise<readonly Reading[]> {
  const csv = resolve(ROOT, process.env['HEADROOM_SHARED'] ?? '../shared', CSV)
  const missing = [join(ROOT, CLI), csv, '/proc/self/stat'].find((file) => !existsSync(file))
  if (missing !== undefined) return Promise.resolve([skipped(`missing file: ${missing}`)])
  const folder = mkdtempSync(join(tmpdir(), 'headroom-bench-'))
  try {
    return Promise.resolve([replayed(csv, join(folder, 'w1.trace.jsonl'))])
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function replayed(csv: string, trace: string): Reading {
  const imported = headroom('trace', 'import', 'tiresias', csv, '--exclusive', '-o', trace)
  if (imported !== null) throw new Error(`headroom trace import: ${imported}`)
  const cpuS: number[] = []
  // The first run fills the cache of compiled modules.
  for (let run = 0; run <= RUNS; run++) {
    const before = childrenCpuS()
    const failure = headroom('sim', 'replay', trace, ...FLEET, '--json')
    if (failure !== null) throw new Error(`headroom sim replay: ${failure}`)
    if (run > 0) cpuS.push(childrenCpuS() - before)
  }
  return {
    name: 'replay_w1_cpu_s',
    value: median(cpuS),
    note: `${TASKS} tasks on 64 GPUs, fifo; ${RUNS} processes`,
  }
}

/** Null on success, otherwise the end of its output. */
function headroom(...args: readonly string[]): string | null {
  const command = ['--import', './cli/require-node.mjs', CLI, ...args]
  const { status, stdout, stderr, error } = spawnSync(process.execPath, command, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  if (status === 0) return args.includes('--json') ? shortfall(stdout) : null
  return error?.message ?? stderr.trim().split('\n').at(-1) ?? `exit code ${status}`
}

/** A replay that omits tasks would be fast. */
function shortfall(json: string): string | null {
  const { metrics } = JSON.parse(json) as {
    readonly metrics: { readonly tasks: { readonly completed: number } }
  }
  return metrics.tasks.completed === TASKS ? null : `${metrics.tasks.completed} of ${TASKS} tasks completed`
}

/** CPU time of all ended child processes (proc_pid_stat(5): cutime, cstime, fields 16 and 17). */
function childrenCpuS(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) / TICKS_A_SECOND
}

function skipped(why: string): Reading {
  return { name: 'replay_w1_cpu_s', value: 'skipped', note: why }
}
