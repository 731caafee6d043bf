/**
 * `runs/` of a sweep's folder: one folder for each finished run, complete or absent. A run is written to a
 * temporary folder and moved when complete, with `done.json`, which identifies the run and has the hashes of
 * its files. A process that dies at any time leaves nothing that looks finished, and torn or changed files
 * are detected.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunResult } from '../../simulator/results/result.ts'
import type { RunIdentity } from '../../simulator/run/run.ts'
import { settingsText } from '../../simulator/experiment/sweep/sweep.ts'
import type { SweepJob } from '../../simulator/experiment/sweep/sweep.ts'
import { UsageError } from '../exit-codes.ts'
import { cannotBeWritten, makeFolder } from '../output-file.ts'
import { jsonText } from '../runs/run-folder.ts'
import type { Timing } from '../runs/stopwatch.ts'

export interface StoredRun {
  readonly result: RunResult
  readonly timing: Timing
  readonly operatorFaults: readonly string[]
}

/** Everything that determines a run's bytes. */
export interface RunKey extends RunIdentity {
  readonly job: SweepJob
  /** Commit of the sources, where known: the version alone does not distinguish states of a checkout. */
  readonly commit: string | null
  readonly hasJournal: boolean
}

interface DoneFile {
  readonly format: 1
  readonly run: unknown
  readonly operator_faults: readonly string[]
  /** SHA-256 in hex, by name. */
  readonly files: Readonly<Record<string, string>>
}

const RUNS = 'runs'
const DONE = 'done.json'
const PARTIAL = '.partial-'
const LOCK = '.lock'
/** The deterministic files of a run, equal on every machine. */
export const RESULT_FILES = ['result.json', 'tasks.csv', 'series.csv', 'journal.jsonl'] as const

/**
 * Creates the folder, removes partial runs of a process that died, and locks it against a second sweep.
 * Throws UsageError.
 */
export function openSweepFolder(folder: string): { readonly close: () => void } {
  for (const each of [folder, join(folder, RUNS)]) makeFolder(`--out ${folder}`, each)
  const lock = join(folder, LOCK)
  const owner = existsSync(lock) ? Number(readFileSync(lock, 'utf8')) : NaN
  if (owner !== process.pid && isAlive(owner))
    throw new UsageError(`--out ${folder}: process ${owner} is writing a sweep there`)
  try {
    writeFileSync(lock, String(process.pid))
    removePartials(folder)
  } catch (error) {
    cannotBeWritten(`--out ${folder}`, error)
  }
  return {
    close: () => {
      removePartials(folder)
      rmSync(lock, { force: true })
    },
  }
}

/** `80-s3`; with other swept fields `80-s3-1f9c04ab`. */
export function runName({ overcommitPercent, seed, settings }: SweepJob): string {
  const others = settingsText(settings)
  const suffix = others === '' ? '' : `-${sha256(others).slice(0, 8)}`
  return `${overcommitPercent}-s${seed}${suffix}`
}

export function runFolderOf(folder: string, job: SweepJob): string {
  return join(folder, RUNS, runName(job))
}

/** Returns the run if it exists, matches the key, and every file is unchanged; else null. */
export function findRun(folder: string, key: RunKey): StoredRun | null {
  const place = runFolderOf(folder, key.job)
  try {
    const done = JSON.parse(readFileSync(join(place, DONE), 'utf8')) as DoneFile
    if (done.format !== 1 || JSON.stringify(done.run) !== JSON.stringify(writtenKey(key))) return null
    const names = filesOf(key)
    const isWhole = names.every((name) => sha256(readFileSync(join(place, name))) === done.files[name])
    if (!isWhole) return null
    return {
      result: JSON.parse(readFileSync(join(place, 'result.json'), 'utf8')) as RunResult,
      timing: JSON.parse(readFileSync(join(place, 'timing.json'), 'utf8')) as Timing,
      operatorFaults: done.operator_faults,
    }
  } catch {
    // Any problem: the run is made again.
    return null
  }
}

/** Temporary folder of a run, unique per process. */
export function partialFolder(folder: string, job: SweepJob): string {
  const partial = join(folder, RUNS, `${PARTIAL}${runName(job)}-${process.pid}`)
  rmSync(partial, { recursive: true, force: true })
  makeFolder(`--out ${folder}`, partial)
  return partial
}

/** Moves a finished run to its place, replacing an older one. */
export function keepRun(
  folder: string,
  partial: string,
  key: RunKey,
  operatorFaults: readonly string[],
): void {
  const files = Object.fromEntries(
    filesOf(key).map((name) => [name, sha256(readFileSync(join(partial, name)))]),
  )
  const done: DoneFile = { format: 1, run: writtenKey(key), operator_faults: operatorFaults, files }
  const place = runFolderOf(folder, key.job)
  try {
    writeFileSync(join(partial, DONE), jsonText(done))
    rmSync(place, { recursive: true, force: true })
    renameSync(partial, place)
  } catch (error) {
    cannotBeWritten(`--out ${folder}`, error)
  }
}

export function filesOf({ hasJournal }: Pick<RunKey, 'hasJournal'>): readonly string[] {
  return RESULT_FILES.filter((name) => hasJournal || name !== 'journal.jsonl')
}

export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

function writtenKey({ job, scenarioSha256, traceSha256, version, commit }: RunKey): unknown {
  return {
    overcommit_percent: job.overcommitPercent,
    settings: job.settings,
    seed: job.seed,
    scenario_sha256: scenarioSha256,
    trace_sha256: traceSha256,
    version,
    commit,
  }
}

function removePartials(folder: string): void {
  for (const name of readdirSync(join(folder, RUNS))) {
    if (name.startsWith(PARTIAL)) rmSync(join(folder, RUNS, name), { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
