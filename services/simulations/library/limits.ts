/**
 * Limits of simulations requested over REST. What exceeds one is refused or ended with a reason that names
 * the limit.
 */
import { availableParallelism } from 'node:os'
import type { SimulationRefusal, Uploader } from '../../../controller/ports/simulation.ts'

export const LIMITS = {
  /** The text of a scenario; equals the limit in simulator/document/yaml-syntax.ts. */
  scenarioBytes: 1_048_576,
  /** CPU time for reading and checking it: a busy machine accepts what an idle one accepts. */
  readCpuMs: 2_000,
  /** Time by the clock for it: other requests wait meanwhile. */
  readWithinMs: 60_000,
  nodes: 10_000,
  gpus: 20_000,
  /** Tasks of one run, including those of traces. */
  tasks: 2_000_000,
  /** A session counts the tasks that arrive within this time, 30 days. */
  sessionTasksWithinMs: 30 * 24 * 60 * 60_000,
  /** Entries of the event queue of one run: messages, timers, arrivals, decisions. */
  steps: 500_000_000,
  /** JavaScript heap of the process of one run or session, MiB. */
  heapMib: 2_048,
  /** Runs of one sweep. */
  sweptRuns: 2_000,
  /**
   * Combinations of swept fields other than the percentage: each is read as a scenario before the sweep
   * starts.
   */
  sweptSettings: 200,
  /** A run, or a whole sweep. */
  runWithinMs: 30 * 60_000,
  /** Open sessions, each with its own process. */
  sessions: 4,
  /** A session without requests for this long is ended. */
  sessionIdleMs: 60 * 60_000,
  /** Concurrent simulations; others wait in the queue. */
  running: 2,
  /** Waiting simulations. */
  queued: 32,
  /** Stored runs and sweeps that have ended; the oldest is removed first. */
  kept: 200,
  /** Their total size on disk. */
  keptBytes: 512 * 1024 * 1024,
  /** Residency data of the runs of one sweep, in total; later runs are stored without it. */
  sweptResidencyBytes: 16 * 1024 * 1024,
  /**
   * Time series of the runs of one sweep: rows of each, and bytes in total; later runs are stored without it.
   */
  sweptSeriesRows: 128,
  sweptSeriesBytes: 32 * 1024 * 1024,
  /** An uploaded trace. */
  traceBytes: 1024 * 1024 * 1024,
  /** Time for checking it. */
  traceWithinMs: 10 * 60_000,
  /** Uploaded traces. */
  traces: 100,
  /** Uploaded scenarios. */
  ownScenarios: 500,
} as const

/** Processes of one sweep: one core stays with the controller. */
export const SWEEP_PROCESSES = Math.max(1, availableParallelism() - 1)

export function refused(refusal: SimulationRefusal): {
  readonly ok: false
  readonly refusal: SimulationRefusal
} {
  return { ok: false, refusal }
}

/**
 * @param what its name, as the beginning of a sentence
 * @returns null: the user may change it
 */
export function whyNotTheirs(what: string, owner: string | null, by: Uploader): string | null {
  if (by.mayChangeOthers || (owner !== null && owner === by.name)) return null
  return `${what} belongs to ${owner ?? 'an unknown owner'}. Choose another name, or ask an operator.`
}
