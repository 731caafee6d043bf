/**
 * The counters of one GPU, and how demand is split at each instant (semantics 6). `settle` is called before
 * anything changes on the GPU, so that everything is constant between two calls; integer microseconds, no
 * remainder is lost.
 */
import { insertAt, removeAt } from '../structures/list-edit.ts'
import type { Instant, Microseconds } from '../../protocol/units.ts'

/** A resident task that wants the GPU. */
export interface Sharer {
  readonly submissionNumber: number
  servedUs: Microseconds
  computeUs: Microseconds
}

export interface GpuMeter {
  settledAt: Instant
  /** Resident tasks that want the GPU, in submission order. */
  readonly sharers: Sharer[]
  /** Number of placed tasks that want the GPU but are not resident. */
  awayCount: number
  /**
   * Service of all sharers together. It covers all the time in which any task shares the GPU, so it is also
   * the busy time.
   */
  servedUs: Microseconds
  swapUs: Microseconds
  computeUs: Microseconds
}

export function newGpuMeter(now: Instant): GpuMeter {
  return { settledAt: now, sharers: [], awayCount: 0, servedUs: 0, swapUs: 0, computeUs: 0 }
}

/**
 * Counts the time since the last call: each of k sharers is served dt / k, the remainder going to the first
 * in submission order; the rest of its demand is `compute`. Tasks that are not resident count as `swap`.
 */
export function settle(meter: GpuMeter, now: Instant): void {
  const us = (now - meter.settledAt) * 1000
  if (us === 0) return
  meter.settledAt = now
  if (meter.awayCount > 0) meter.swapUs += meter.awayCount * us
  const sharers = meter.sharers
  const count = sharers.length
  if (count === 0) return
  meter.servedUs += us
  if (count === 1) {
    ;(sharers[0] as Sharer).servedUs += us
    return
  }
  meter.computeUs += (count - 1) * us
  const share = Math.floor(us / count)
  const remainder = us - share * count
  for (let i = 0; i < count; i++) {
    const sharer = sharers[i] as Sharer
    const served = i < remainder ? share + 1 : share
    sharer.servedUs += served
    sharer.computeUs += us - served
  }
}

/** Call `settle` first: one more task shares the GPU. */
export function addSharer(meter: GpuMeter, sharer: Sharer): void {
  let at = meter.sharers.length
  while (at > 0 && (meter.sharers[at - 1] as Sharer).submissionNumber > sharer.submissionNumber) at -= 1
  insertAt(meter.sharers, at, sharer)
}

/** Call `settle` first: the task no longer shares the GPU. */
export function removeSharer(meter: GpuMeter, sharer: Sharer): void {
  removeAt(meter.sharers, meter.sharers.indexOf(sharer))
}
