/** Input of `sim run`, `sweep` and `check`: the scenario, and the identity of its traces. */
import { createHash } from 'node:crypto'
import type { DurationMs } from '../../protocol/units.ts'
import type { RunIdentity } from '../../simulator/run/run.ts'
import { loadScenario, type LoadedScenario, type ScenarioSource } from '../../simulator/scenario/load.ts'
import type { Override } from '../../simulator/document/override.ts'
import type { Scenario, WorkloadItem } from '../../simulator/scenario/scenario.ts'
import { fingerprintTrace } from '../../simulator/trace/fingerprint-file.ts'
import { packageVersion } from '../package-info.ts'

export interface RunInput {
  readonly scenario: Scenario
  readonly identity: RunIdentity
  /** Approximate number of tasks, for progress. */
  readonly expectedTasks: number
}

/** Results of `fingerprintTrace` by path, so that a trace is read once for all settings of a sweep. */
export type Fingerprints = Map<string, Awaited<ReturnType<typeof fingerprintTrace>>>

/**
 * Throws ScenarioError or TraceError.
 * @param withinMs as for `expectedOf`
 */
export async function readRunInput(
  source: ScenarioSource,
  overrides: readonly Override[] = [],
  known: Fingerprints = new Map(),
  withinMs: DurationMs = Infinity,
): Promise<RunInput> {
  return identified(loadScenario(source, overrides), known, withinMs)
}

/** Reads the traces of a loaded scenario. Throws TraceError. */
async function identified(
  { scenario, sha256 }: LoadedScenario,
  known: Fingerprints = new Map(),
  withinMs: DurationMs = Infinity,
): Promise<RunInput> {
  const hashes: string[] = []
  let expectedTasks = 0
  for (const item of scenario.workload) {
    if (item.kind !== 'trace') {
      expectedTasks += expectedOf(item, withinMs)
      continue
    }
    const fingerprint = known.get(item.file) ?? (await fingerprintTrace(item.file))
    known.set(item.file, fingerprint)
    const { sha256: traceSha256, tasks } = fingerprint
    hashes.push(traceSha256)
    expectedTasks += tasks * item.sample
  }
  return {
    scenario,
    identity: { scenarioSha256: sha256, traceSha256: combined(hashes), version: packageVersion() },
    expectedTasks,
  }
}

/**
 * Returns the approximate number of tasks of the item.
 * @param withinMs later tasks are not counted; Infinity: all
 */
export function expectedOf(
  item: Exclude<WorkloadItem, { kind: 'trace' }>,
  withinMs: DurationMs = Infinity,
): number {
  if (item.kind === 'task') return 1
  const untilMs = Math.min(item.untilMs ?? Infinity, withinMs)
  const byTime = (Math.max(0, untilMs - item.fromMs) / 3_600_000) * item.ratePerHour
  return Math.min(item.count ?? Infinity, byTime)
}

/**
 * For one trace: its SHA-256. For several: that of their digests in hex, one per line, in the order of the
 * workload.
 */
function combined(hashes: readonly string[]): string | null {
  if (hashes.length <= 1) return hashes[0] ?? null
  const hash = createHash('sha256')
  for (const each of hashes) hash.update(`${each}\n`)
  return hash.digest('hex')
}
