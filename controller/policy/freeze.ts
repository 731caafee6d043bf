/** Whether silent nodes are more likely cut off than dead. */
import type { DurationMs, Instant } from '../../protocol/units.ts'

const SILENT_PERCENT = 55
const MIN_NODES = 4
/** Last contacts within this time, or two heartbeats if that is more, count as cut off by one event. */
const TOGETHER_WITHIN_MS = 15_000
/**
 * Returns how many nodes became silent together, and whether that is mass silence.
 * @param heardAt when each silent node was last heard
 */
export function judgeSilence(
  heardAt: readonly Instant[],
  nodes: number,
  heartbeatMs: DurationMs,
): { readonly isFrozen: boolean; readonly silentNodes: number } {
  const silentNodes = largestTogether(heardAt, Math.max(TOGETHER_WITHIN_MS, 2 * heartbeatMs))
  return { isFrozen: nodes >= MIN_NODES && 100 * silentNodes >= SILENT_PERCENT * nodes, silentNodes }
}

/** Returns the largest number of instants within a window of this length. */
function largestTogether(instants: readonly Instant[], withinMs: number): number {
  const sorted = instants.toSorted((a, b) => a - b)
  let largest = 0
  let first = 0
  sorted.forEach((at, i) => {
    while (at - (sorted[first] as Instant) > withinMs) first += 1
    largest = Math.max(largest, i - first + 1)
  })
  return largest
}
