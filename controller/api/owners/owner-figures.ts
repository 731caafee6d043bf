/** Sums over the open tasks of each owner, computed once for several readers. */
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import { movableMib } from '../../model/placement.ts'
import type { Task } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import { presentInstantOrNull } from '../http/instant.ts'
import type { OwnerBody } from './schema.ts'

export interface OwnerFigures {
  readonly at: Instant
  readonly owners: readonly OwnerBody[]
}

/** An answer is given again for this long. */
const FRESH_MS: DurationMs = 2_000
/** Open tasks that are visited before other work runs. */
const SLICE_TASKS = 10_000

/** One computation at a time. */
export function createOwnerFigures(views: Views): () => Promise<OwnerFigures> {
  let known: { readonly at: Instant; readonly figures: Promise<OwnerFigures> } | null = null
  return () => {
    const now = views.now()
    if (known === null || now < known.at || now - known.at >= FRESH_MS)
      known = { at: now, figures: figuresOf(views, now) }
    return known.figures
  }
}

interface Sums {
  running: number
  swappedOut: number
  pending: number
  onHold: number
  gpus: number
  residentMib: number
  outMib: number
  queueUs: number
  swapUs: number
  computeUs: number
  waitsSince: Instant | null
}

async function figuresOf(views: Views, at: Instant): Promise<OwnerFigures> {
  const byOwner = new Map<string | null, Sums>()
  let visited = 0
  for (const task of views.openTasks()) {
    visited += 1
    if (visited % SLICE_TASKS === 0) await new Promise((resolve) => setImmediate(resolve))
    const { owner } = task.spec
    let sums = byOwner.get(owner)
    if (sums === undefined) byOwner.set(owner, (sums = newSums()))
    add(sums, task, views)
  }
  return { at, owners: [...byOwner].map(([owner, sums]) => presentOwner(owner, sums)) }
}

function newSums(): Sums {
  return {
    running: 0,
    swappedOut: 0,
    pending: 0,
    onHold: 0,
    gpus: 0,
    residentMib: 0,
    outMib: 0,
    queueUs: 0,
    swapUs: 0,
    computeUs: 0,
    waitsSince: null,
  }
}

function add(sums: Sums, task: Task, views: Views): void {
  const { queue, swap, compute } = views.taskCounters(task)
  sums.queueUs += queue
  sums.swapUs += swap
  sums.computeUs += compute
  const { placement } = task
  if (placement === null) {
    sums.pending += 1
    if (task.isHeld) sums.onHold += 1
    else sums.waitsSince = Math.min(sums.waitsSince ?? Infinity, task.pendingSince)
    return
  }
  const gpuCount = placement.gpus.length
  const mib = movableMib(placement) * gpuCount
  sums.residentMib += placement.residualMib * gpuCount
  sums.running += 1
  sums.gpus += gpuCount
  if (placement.residency === 'swapped_out') {
    sums.swappedOut += 1
    sums.outMib += mib
  } else sums.residentMib += mib
}

function presentOwner(owner: string | null, sums: Sums): OwnerBody {
  const { queueUs, swapUs, computeUs } = sums
  return {
    owner,
    tasks: {
      running: sums.running,
      swapped_out: sums.swappedOut,
      pending: sums.pending,
      on_hold: sums.onHold,
    },
    gpus: sums.gpus,
    resident_mib: sums.residentMib,
    out_mib: sums.outMib,
    lost: {
      queue_seconds: secondsOf(queueUs),
      swap_seconds: secondsOf(swapUs),
      compute_seconds: secondsOf(computeUs),
      total_seconds: secondsOf(queueUs + swapUs + computeUs),
    },
    longest_wait_since: presentInstantOrNull(sums.waitsSince),
  }
}

function secondsOf(us: number): number {
  return Math.round(us / 1000) / 1000
}
