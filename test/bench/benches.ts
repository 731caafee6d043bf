/** Every bench runs in a separate process, unaffected by the heap and the compiled code of others. */
import type { MeasureName, Reading } from './targets.ts'

export interface Bench {
  readonly names: readonly MeasureName[]
  /** Maximum heap of the process. */
  readonly heapMib: number
  readonly measure: () => Promise<readonly Reading[]>
}

/** Loaded only in the measuring process. */
export const BENCHES: readonly Bench[] = [
  {
    names: ['sim_events_ratio', 'digest_ratio'],
    heapMib: 2048,
    measure: async () => (await import('./sim-events.ts')).measureSimEvents(),
  },
  {
    names: ['replay_100k'],
    heapMib: 2048,
    measure: async () => (await import('./replay.ts')).measureReplay('replay_100k', 100_000, 1_000, 3),
  },
  {
    names: ['replay_1m'],
    heapMib: 4096,
    measure: async () => (await import('./replay.ts')).measureReplay('replay_1m', 1_000_000, 10_000, 1),
  },
  {
    names: ['replay_w1_cpu_s'],
    heapMib: 512,
    measure: async () => (await import('./replay-w1.ts')).measureReplayW1(),
  },
  {
    names: ['decisions_scaling'],
    heapMib: 2048,
    measure: async () => (await import('./decisions.ts')).measureScaling(),
  },
  {
    names: ['decisions_per_cpu_s'],
    heapMib: 2048,
    measure: async () => (await import('./decisions.ts')).measureDecisions(),
  },
  {
    names: ['blocked_pass_ms'],
    heapMib: 2048,
    measure: async () => (await import('./blocked-pass.ts')).measureBlockedPass(),
  },
  {
    names: ['victim_choice_ratio'],
    heapMib: 4096,
    measure: async () => (await import('./victim-choice.ts')).measureVictimChoice(),
  },
  {
    names: ['heap_per_task_bytes'],
    heapMib: 4096,
    measure: async () => (await import('./heap-per-task.ts')).measureHeap(),
  },
]
