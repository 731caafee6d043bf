/** Renders decisions as one sentence each. Lists of names are shortened, so that the length is bounded. */
import { isAboveRequest, movableMib } from '../../model/placement.ts'
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { PlacementStrategy } from '../../model/config.ts'
import type { ConsideredVictim } from '../../model/decision.ts'
import { largestEverMib } from '../../policy/placement/feasible.ts'
import { gpusInWords, inMib, MAX_NAMES, MOVERS, namesInWords } from '../../model/words.ts'
import type { Shortage } from '../../policy/swap/victims.ts'
import type { LiveEntry, LivePlacement, LiveTask } from '../../state/facts.ts'

const PREFERS: Readonly<Record<PlacementStrategy, string>> = {
  best_fit: 'of all places where it fits, this one leaves the least VRAM free',
  fifo: 'of all places where it fits, this one leaves the least VRAM free',
  spread: 'of all places where it fits, this one has the most free VRAM',
}

export function placementInWords(
  placement: LivePlacement,
  rule: 'fits_now' | 'victims_left',
  strategy: PlacementStrategy,
): string {
  const there = `${nameOf(placement.task)} starts on ${gpusInWords(placement.gpus)}`
  if (rule === 'victims_left')
    return `${there}: the swap-outs that free its ${inMib(placement.demandMib)} are complete.`
  return `${there}: its ${inMib(placement.demandMib)} fit there now, and ${PREFERS[strategy]}.`
}

export function swapOutInWords(
  entry: LiveEntry,
  victims: readonly LiveTask[],
  candidates: readonly ConsideredVictim[],
  shortages: readonly Shortage[],
  now: Instant,
): string {
  const are = victims.length === 1 ? 'is' : 'are'
  const missingMib = shortages.reduce((sum, { missingMib: mib }) => sum + mib, 0)
  const aim = { swap_in: 'return', growth: 'grow', placement: 'start' }[entry.kind]
  const where = gpusInWords(entry.gpus)
  const who = victimsInWords(victims, now)
  return (
    `${who} ${are} swapped out of ${where} so that ${nameOf(entry.task)} can ${aim}: ` +
    `${inMib(missingMib)} were missing, and ${whyThey(entry, victims, candidates)}.`
  )
}

export function operatorSwapOutWords(placement: LivePlacement, by: string | null): string {
  const from = `${nameOf(placement.task)} is swapped out of ${gpusInWords(placement.gpus)}`
  return `${from}${moverInWords(placement.task)}: requested by ${by ?? 'an operator'}.`
}

export function returnGrownInWords(placement: LivePlacement, now: Instant): string {
  const waited =
    placement.heldGrowth === null ? '' : ` waited ${secondsSince(placement.heldGrowth.askedAt, now)}`
  return (
    `${nameOf(placement.task)} is swapped out of ${gpusInWords(placement.gpus)} to return with more VRAM: ` +
    `its growth to ${inMib(placement.heldGrowth?.mib)}${waited}.`
  )
}

export function swapInInWords(entry: LiveEntry, now: Instant): string {
  return (
    `${nameOf(entry.task)} returns to ${gpusInWords(entry.gpus)}: ` +
    `it waited ${secondsSince(entry.askedAt, now)}, and its ${inMib(entry.needMib)} are free.`
  )
}

export function eagerReturnInWords(placement: LivePlacement, now: Instant): string {
  const { task, gpus, swappedOutSince } = placement
  const leftMib = Math.min(...gpus.map(({ freeMib }) => freeMib - movableMib(placement)))
  const out = `after ${secondsSince(swappedOutSince ?? now, now)} out of VRAM`
  return (
    `${nameOf(task)} returns to ${gpusInWords(gpus)} ${out} without a request for it: ` +
    `no task waits for VRAM there, and ${inMib(leftMib)} stay free.`
  )
}

export function growthInWords(placement: LivePlacement, byMib: Mib, isForReturn: boolean): string {
  const why = isForReturn ? 'it is swapped out and returns with that' : 'the VRAM is free'
  return (
    `${nameOf(placement.task)} gets ${inMib(byMib)} more on ${gpusInWords(placement.gpus)}, ` +
    `${inMib(placement.demandMib)} in total: ${why}.`
  )
}

export function growthRefusedInWords(entry: LiveEntry, reason: string, now: Instant): string {
  return (
    `${nameOf(entry.task)} does not get ${inMib(entry.needMib)} more on ${gpusInWords(entry.gpus)}: ` +
    `it waited ${secondsSince(entry.askedAt, now)} (${reason}).`
  )
}

export type NeverGranted = 'VRAM_LIMIT' | 'NEVER_FITS'

export function growthTooLargeInWords(placement: LivePlacement, mib: Mib, reason: NeverGranted): string {
  const { task, gpus } = placement
  const why =
    reason === 'VRAM_LIMIT'
      ? `its own limit (vram_limit_mib) is ${inMib(task.spec.limits?.vramMib ?? 0)}`
      : `at most ${inMib(Math.min(...gpus.map(largestEverMib)))} fit there next to the reserve`
  return `${nameOf(task)} does not get ${inMib(mib)} on ${gpusInWords(gpus)}: ${why} (${reason}).`
}

function whyThey(
  entry: LiveEntry,
  victims: readonly LiveTask[],
  candidates: readonly ConsideredVictim[],
): string {
  const count = new Set(candidates.map(({ taskId }) => taskId)).size
  if (entry.isCollector)
    return `${nameOf(entry.task)} has waited so long that tasks leave for it as they become eligible`
  if (count === victims.length) return 'no other task is eligible'
  const isWholeOnly = candidates.every(({ chosenBy }) => chosenBy !== 'oldest_then_fewest_bytes')
  const are = victims.length === 1 ? 'it is' : 'they are'
  if (isWholeOnly) return `of ${count} eligible tasks ${are} first in order`
  const move = victims.length === 1 ? 'moves' : 'move'
  return (
    `of ${count} eligible tasks ${are} among the least recently swapped out, ` +
    `and ${move} the fewest bytes`
  )
}

function victimsInWords(victims: readonly LiveTask[], now: Instant): string {
  const named = victims.slice(0, MAX_NAMES).map((task) => {
    const { placement } = task
    if (placement === null) return nameOf(task)
    const idle = placement.wantsGpu ? 'active' : `idle ${secondsSince(placement.idleSince, now)}`
    const above = isAboveRequest(placement) ? `, above its request of ${inMib(task.spec.vramMib)}` : ''
    return `${nameOf(task)} (${inMib(movableMib(placement))}, ${idle}${above}${moverInWords(task)})`
  })
  return namesInWords(named, victims.length)
}

/** The swap method, where it is not the usual one. */
function moverInWords({ spec }: LiveTask): string {
  const method = spec.swapMethod ?? 'driver'
  return method === 'driver' ? '' : `, by ${MOVERS[method]}`
}

function nameOf({ spec }: LiveTask): string {
  return spec.name
}

function secondsSince(from: Instant, now: Instant): string {
  return `${Math.max(0, Math.floor((now - from) / 1000))} s`
}
