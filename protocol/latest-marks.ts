import { MAX_SWAP_MARKS, type SwapMark } from './agent-messages.ts'

/** Returns the mark of each GPU and class with the latest round, and of these with the latest decision. */
export function latestMarks(marks: Iterable<SwapMark>): readonly SwapMark[] {
  const latest = new Map<string, SwapMark>()
  for (const mark of marks) {
    const key = `${mark.gpu} ${mark.class}`
    const { round = -1, decision = -1 } = latest.get(key) ?? {}
    if (mark.round > round || (mark.round === round && mark.decision > decision)) latest.set(key, mark)
  }
  return [...latest.values()].slice(-MAX_SWAP_MARKS)
}
