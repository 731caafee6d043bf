/** `headroom sim compare A B`. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { compareRuns, formatComparison, hasDifferences } from '../../simulator/report/compare-runs.ts'
import type { ComparableRun } from '../../simulator/report/compare-runs.ts'
import { EXIT_DIGEST_MISMATCH, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { fileFailure } from '../command/file-failure.ts'

export interface SimCompareOptions {
  readonly json?: boolean
}

/** Exits with 0 when they are equal, with 6 when they differ. */
export function simCompare(a: string, b: string, { json }: SimCompareOptions): number {
  const [before, after] = [readRuns(a), readRuns(b)]
  if (isSweep(before) !== isSweep(after))
    throw new UsageError(`${a} and ${b} cannot be compared: one is a sweep, the other a single run`)
  const comparison = compareRuns(before, after)
  if (comparison.pairs === 0) {
    throw new UsageError(
      `${a} and ${b} have no runs in common: A has ${comparison.only_in_a[0]}, B has ` +
        `${comparison.only_in_b[0]}, …`,
    )
  }
  const text =
    json === true
      ? `${JSON.stringify(comparison, null, 2)}\n`
      : `${sides([a, before], [b, after])}${formatComparison(comparison)}`
  process.stdout.write(text)
  return hasDifferences(comparison) ? EXIT_DIGEST_MISMATCH : EXIT_OK
}

type Side = readonly [path: string, runs: readonly ComparableRun[]]

function sides(...both: readonly [Side, Side]): string {
  const lines = both.map(([path, runs], i) => {
    const [first] = runs as readonly [ComparableRun]
    const what = isSweep(runs)
      ? `a sweep of ${runs.length} ${runs.length === 1 ? 'run' : 'runs'}`
      : `a run with seed ${first.seed}`
    return (
      `${'AB'[i]}  ${path}: ${what}, scenario ${first.scenario_sha256?.slice(0, 12) ?? '–'}, version ` +
      `${first.version}\n`
    )
  })
  return lines.join('')
}

function isSweep(runs: readonly ComparableRun[]): boolean {
  return runs[0]?.overcommit_percent !== undefined
}

/** Reads a folder of `--out`, or the output of `--json`. Returns at least one run. */
function readRuns(path: string): readonly ComparableRun[] {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  const file = isFolder ? join(path, 'result.json') : path
  const content = readJson(file)
  const runs =
    isRecord(content) && Array.isArray(content['runs']) ? (content['runs'] as unknown[]) : [content]
  if (runs.length > 0 && runs.every(isRun)) return runs
  throw new UsageError(`${file}: not the result of a run or a sweep`)
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`${file}: ${unreadable(error as Error)}`, { cause: error })
  }
}

function unreadable(error: Error): string {
  return fileFailure(error) ?? `not the result of \`sim run\` or \`sim sweep\`: ${error.message}`
}

function isRun(value: unknown): value is ComparableRun {
  return (
    isRecord(value) &&
    isRecord(value['metrics']) &&
    typeof value['seed'] === 'number' &&
    typeof value['virtual_s'] === 'number'
  )
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
