/**
 * The limit for a simulation: a binary heap of plain objects and a closure per event, and nothing else. The
 * events have the shape of the simulated case: an arrival schedules the next arrival and its own task's first
 * event, each event of a task schedules the next one, so that the number of pending events and their
 * distances are the same. Virtual time begins at 0.
 */
import type { Chains } from './event-chains.ts'

interface BareEvent {
  readonly at: number
  readonly order: number
  readonly fn: () => void
}

/** Runs this number of tasks, repeating the chains, and returns the number of events. */
export function runBareLoop(chains: Chains, taskCount: number): number {
  const { arrivalGaps, gaps, starts } = chains
  const heap: BareEvent[] = []
  let now = 0
  let order = 0
  let handled = 0

  const plan = (at: number, fn: () => void): void => push(heap, { at, order: order++, fn })
  const follow = (step: number, end: number): void => {
    if (step === end) return
    plan(now + (gaps[step] as number), () => {
      handled += 1
      follow(step + 1, end)
    })
  }
  const arrive = (task: number): void => {
    handled += 1
    if (task + 1 < taskCount)
      plan(now + (arrivalGaps[(task + 1) % arrivalGaps.length] as number), () => arrive(task + 1))
    const chain = task % arrivalGaps.length
    follow(starts[chain] as number, starts[chain + 1] as number)
  }

  plan(0, () => arrive(0))
  for (let next = pop(heap); next !== undefined; next = pop(heap)) {
    now = next.at
    next.fn()
  }
  return handled
}

function push(heap: BareEvent[], event: BareEvent): void {
  let at = heap.length
  heap.push(event)
  while (at > 0) {
    const parent = (at - 1) >>> 1
    const other = heap[parent] as BareEvent
    if (!isBefore(event, other)) break
    heap[at] = other
    at = parent
  }
  heap[at] = event
}

function pop(heap: BareEvent[]): BareEvent | undefined {
  const first = heap[0]
  const last = heap.pop()
  const length = heap.length
  if (length === 0 || last === undefined) return first
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= length) break
    if (child + 1 < length && isBefore(heap[child + 1] as BareEvent, heap[child] as BareEvent)) child += 1
    const other = heap[child] as BareEvent
    if (!isBefore(other, last)) break
    heap[at] = other
    at = child
  }
  heap[at] = last
  return first
}

/** 1. Earlier. 2. Requested earlier. */
function isBefore(a: BareEvent, b: BareEvent): boolean {
  return a.at !== b.at ? a.at < b.at : a.order < b.order
}
