/**
 * The speed of a GPU's copies from copies that were observed: time = fixed + bytes / rate, with the smallest
 * sum of relative absolute deviations (least absolute deviations: a single slow copy moves nothing).
 */
import type { DurationMs, Mib } from '../../protocol/units.ts'

export interface ObservedCopy {
  /** On each of the task's GPUs. */
  readonly mib: Mib
  readonly ms: DurationMs
}

export interface CopyLine {
  readonly fixedMs: DurationMs
  readonly mibPerS: number
}

/** The profile counts as much as this number of observations that confirm it. */
const PROFILE_COUNTS = 3

/** A line of its own needs this number of observations, and sizes that differ by this factor. */
const MIN_FOR_LINE = 8
const MIN_SIZE_RATIO = 2

/** Same limit as in the swap profile of a scenario. */
const MAX_MIB_PER_S = 1_000_000

/** Milliseconds per MiB instead of a rate: 0 is possible. */
interface Line {
  readonly fixedMs: number
  readonly perMib: number
}

/**
 * With few observations, or copies of one size, the profile times the median ratio of measured to predicted
 * time; otherwise the best line.
 * @param copies each with `mib` above 0
 */
export function fitCopies(copies: readonly ObservedCopy[], profile: CopyLine): CopyLine {
  const prior: Line = { fixedMs: profile.fixedMs, perMib: 1000 / profile.mibPerS }
  const ratios = copies.map(({ mib, ms }) => ms / timeOf(prior, mib))
  const scale = median([...ratios, ...Array<number>(PROFILE_COUNTS).fill(1)])
  const scaled: Line = { fixedMs: prior.fixedMs * scale, perMib: prior.perMib * scale }
  return rounded(hasSizes(copies) ? bestLine(copies, prior, scaled) : scaled)
}

/** Median relative deviation of the observations from the line, percent; null without observations. */
export function copyErrorPercent(copies: readonly ObservedCopy[], { fixedMs, mibPerS }: CopyLine) {
  if (copies.length === 0) return null
  const line: Line = { fixedMs, perMib: 1000 / mibPerS }
  return 100 * median(copies.map(({ mib, ms }) => Math.abs(timeOf(line, mib) - ms) / Math.max(1, ms)))
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const [low = 0, high = low] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return (low + high) / 2
}

function hasSizes(copies: readonly ObservedCopy[]): boolean {
  if (copies.length < MIN_FOR_LINE) return false
  const sizes = copies.map(({ mib }) => mib)
  return Math.max(...sizes) >= MIN_SIZE_RATIO * Math.min(...sizes)
}

/** A best line passes through two observations, or through one with a fixed part or a rate of 0. */
function bestLine(copies: readonly ObservedCopy[], prior: Line, start: Line): Line {
  const deviation = (line: Line): number =>
    copies.reduce((sum, { mib, ms }) => sum + Math.abs(timeOf(line, mib) - ms) / timeOf(prior, mib), 0)
  let best = { line: start, deviation: deviation(start) }
  for (const line of linesThrough(copies)) {
    const its = deviation(line)
    if (its < best.deviation) best = { line, deviation: its }
  }
  return best.line
}

function* linesThrough(copies: readonly ObservedCopy[]): Generator<Line> {
  for (const [index, one] of copies.entries()) {
    yield { fixedMs: 0, perMib: one.ms / one.mib }
    for (const other of copies.slice(index + 1)) {
      if (other.mib === one.mib) continue
      const perMib = (other.ms - one.ms) / (other.mib - one.mib)
      const fixedMs = one.ms - perMib * one.mib
      if (perMib > 0 && fixedMs >= 0) yield { fixedMs, perMib }
    }
  }
}

function timeOf({ fixedMs, perMib }: Line, mib: Mib): number {
  return fixedMs + perMib * mib
}

function rounded({ fixedMs, perMib }: Line): CopyLine {
  const mibPerS = Math.round(1000 / Math.max(perMib, 1000 / MAX_MIB_PER_S))
  return { fixedMs: Math.round(fixedMs), mibPerS: Math.max(1, mibPerS) }
}
