/**
 * The growing counters of one GPU, and how an instant's demand is split (semantics 6). `settle` is called
 * before anything changes on the GPU, so that between two calls everything is constant; integer microseconds,
 * no remainder is lost.
 */
import { insertAt, removeAt } from '../domain/list-edit.ts'
import type { Instant, Microseconds } from '../../protocol/units.ts'

/** Somebody resident who wants the GPU. */
export interface Sharer {
  readonly submissionNumber: number
  servedUs: Microseconds
  computeUs: Microseconds
}

export interface GpuMeter {
  settledAt: Instant
  /** Resident tasks that want the GPU, in submission order. */
  readonly sharers: Sharer[]
  /** How many placed tasks want the GPU but are not resident. */
  awayCount: number
  /**
   * What its sharers were served, together: as long as anybody shares it, all of the time, so that this is
   * how long it was busy too.
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
 * in order of submission; the rest of its demand is `compute`. Those away count as `swap`.
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

/** After `settle`: one more task shares the GPU. */
export function addSharer(meter: GpuMeter, sharer: Sharer): void {
  let at = meter.sharers.length
  while (at > 0 && (meter.sharers[at - 1] as Sharer).submissionNumber > sharer.submissionNumber) at -= 1
  insertAt(meter.sharers, at, sharer)
}

/** After `settle`: it no longer does. */
export function removeSharer(meter: GpuMeter, sharer: Sharer): void {
  removeAt(meter.sharers, meter.sharers.indexOf(sharer))
}
