/** Progress of the main thread for its busy writer thread: a sign of life, and the lag. */
import type { PostgresSettings } from './settings.ts'

/** Times per lease. */
const PER_LEASE = 10
const [COUNT, LAG] = [0, 1]
const NO_LAG = -1

export function newProgress(): SharedArrayBuffer {
  return new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)
}

/**
 * Runs on the main thread.
 * @param lagMs null: it does not follow.
 * @returns a function that ends it
 */
export function tellProgress(
  { progress, leaseMs }: Pick<PostgresSettings, 'progress' | 'leaseMs'>,
  lagMs: () => number | null,
): () => void {
  if (progress === null) return () => {}
  const cells = new Int32Array(progress)
  const tell = (): void => {
    Atomics.add(cells, COUNT, 1)
    Atomics.store(cells, LAG, Math.round(lagMs() ?? NO_LAG))
  }
  tell()
  const timer = setInterval(tell, leaseMs / PER_LEASE).unref()
  return () => clearInterval(timer)
}

/** @returns a function: the event loop of the main thread made progress within one lease */
export function aliveIn(shared: SharedArrayBuffer, leaseMs: number): () => boolean {
  const cells = new Int32Array(shared)
  let last = -1
  let changedAt = 0
  return () => {
    const now = performance.now()
    const count = Atomics.load(cells, COUNT)
    if (count !== last) changedAt = now
    last = count
    return now - changedAt < leaseMs
  }
}

/** Null: the main thread does not follow the leader. */
export function lagIn(shared: SharedArrayBuffer): number | null {
  const lag = Atomics.load(new Int32Array(shared), LAG)
  return lag === NO_LAG ? null : lag
}
