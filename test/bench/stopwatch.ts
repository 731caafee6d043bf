/** CPU time of this process, all its threads: on a shared machine it measures the work, unlike wall time. */

export interface Timed<T> {
  readonly cpuS: number
  readonly result: T
}

export function timed<T>(work: () => T): Timed<T> {
  const before = process.cpuUsage()
  const result = work()
  return { cpuS: cpuSince(before), result }
}

export async function timedAsync<T>(work: () => Promise<T>): Promise<Timed<T>> {
  const before = process.cpuUsage()
  const result = await work()
  return { cpuS: cpuSince(before), result }
}

/** True once this process has used this much more CPU time. */
export function stopsAfter(seconds: number): () => boolean {
  const before = process.cpuUsage()
  return () => cpuSince(before) >= seconds
}

export function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort((a, b) => a - b)
  const middle = sorted.length >>> 1
  const upper = sorted[middle] ?? NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2
}

/**
 * Garbage of the previous run must not burden the next one, and neither must the sweep that the collector
 * leaves to its other threads: `timed` counts all threads. Needs --expose-gc.
 */
export function collectGarbage(): void {
  if (globalThis.gc === undefined)
    throw new Error('a bench runs under --expose-gc: start it through test/bench/main.ts')
  globalThis.gc()
  while (cpuOfOtherThreadsMs(SWEEP_CHECK_MS) > QUIET_MS);
}

const SWEEP_CHECK_MS = 10
const QUIET_MS = 1

/** CPU time of the other threads while this one sleeps. */
function cpuOfOtherThreadsMs(sleepMs: number): number {
  const before = process.cpuUsage()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, sleepMs)
  return 1000 * cpuSince(before)
}

/** 1234567 as `1.23 M`: for notes. */
export function inShort(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(2)} M`
  return value >= 1e4 ? `${(value / 1e3).toFixed(0)} k` : value.toFixed(value < 10 ? 2 : 0)
}

function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}
