/**
 * What simulations that are asked for over REST may take. Each is refused or ended with a reason that names
 * the limit.
 */
import { availableParallelism } from 'node:os'

export const LIMITS = {
  /** The text of a scenario; as in simulator/scenario/yaml-syntax.ts. */
  scenarioBytes: 1_048_576,
  /** Reading it and finding it right, or not. */
  readWithinMs: 2_000,
  nodes: 10_000,
  gpus: 20_000,
  /** Tasks that come in one run, those of traces included. */
  tasks: 2_000_000,
  /** Of a session those tasks are counted that come within this, 30 days. */
  sessionTasksWithinMs: 30 * 24 * 60 * 60_000,
  /** Entries of the event queue that one run may take: messages, timers, arrivals, decisions. */
  steps: 500_000_000,
  /** Memory of the process of one run or session: the heap of JavaScript, MiB. */
  heapMib: 2_048,
  /** Runs of one sweep. */
  sweptRuns: 2_000,
  /**
   * Combinations of the fields that a sweep varies beside the percentage: each is read as a scenario before
   * it begins.
   */
  sweptSettings: 200,
  /** A run, or all of a sweep. */
  runWithinMs: 30 * 60_000,
  /** Sessions that are open at a time, a process each. */
  sessions: 4,
  /** One that nobody has asked anything for so long is ended. */
  sessionIdleMs: 60 * 60_000,
  /** Simulations that run at a time; the others wait in the queue. */
  running: 2,
  /** Simulations that wait. */
  queued: 32,
  /** Runs and sweeps that are over and kept; the oldest goes first. */
  kept: 200,
  /** What these may take on disk together. */
  keptBytes: 512 * 1024 * 1024,
  /** Who was where in the runs of one sweep, together; later runs are kept without it. */
  sweptResidencyBytes: 16 * 1024 * 1024,
  /**
   * How the runs of one sweep went over time: rows of each, and all of them together; later runs are kept
   * without it.
   */
  sweptSeriesRows: 128,
  sweptSeriesBytes: 32 * 1024 * 1024,
  /** A trace as it is sent. */
  traceBytes: 1024 * 1024 * 1024,
  /** Checking it. */
  traceWithinMs: 10 * 60_000,
  /** Traces of people's own. */
  traces: 100,
  /** Scenarios of people's own. */
  ownScenarios: 500,
} as const

/** Processes of one sweep: one core stays with the controller. */
export const SWEEP_PROCESSES = Math.max(1, availableParallelism() - 1)
