/**
 * Checks eager returns (semantics 5): they do not happen while an entry waits on the GPUs of the task or too
 * little VRAM would stay free there, nor for a task that an operator swapped out, nor on a closed node; and
 * the task that was out for longest returns first. A task that nothing keeps away must not stay out on GPUs
 * without another resident task. Only in a world without faults.
 */
import type { Event } from '../../../controller/model/event.ts'
import type { GpuReading, PlacementReading } from '../../../controller/query/cluster-reading.ts'
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { Report } from '../../check/violation.ts'
import type { World } from '../../world/world.ts'

/** Minimum VRAM that must stay free; a tenth of the GPU if that is more. */
const LEAST_LEFT_MIB = 1024

export class EagerWatch {
  readonly #world: World
  readonly #report: Report
  /** Tasks that an operator swapped out, until they are resident again. */
  readonly #sentAway = new Set<string>()

  constructor(world: World, report: Report) {
    this.#world = world
    this.#report = report
  }

  /** Called after a transaction. */
  heard(events: readonly Event[]): void {
    for (const event of events) {
      const { kind, taskId, data } = event
      if (taskId === null) continue
      if (kind === 'swap_ordered' && data['direction'] === 'out') this.#sentAway.add(taskId)
      else if (kind === 'task_residency' && data['residency'] === 'resident') this.#sentAway.delete(taskId)
      else if (kind === 'task_finished' || kind === 'task_returned') this.#sentAway.delete(taskId)
      else if (kind === 'swap_in_decided' && data['eager'] === true) this.#judge(taskId)
    }
  }

  /** Called when every decision of an instant is complete. */
  afterInstant(): void {
    const { cluster } = this.#world.controller
    const eagerMs = cluster.policy.eagerSwapInMs
    if (eagerMs === null || cluster.pendingCount > 0) return
    const now = this.#world.clock.now()
    for (const { spec, placement } of cluster.tasks.values()) {
      if (placement === null || placement.residency !== 'swapped_out' || placement.swappedOutSince === null)
        continue
      const awayMs = now - Math.max(placement.swappedOutSince + eagerMs, placement.backOffUntil)
      if (awayMs > 0 && this.#isLeftAlone(placement))
        this.#report(`it should have returned ${awayMs} ms ago`, { taskId: spec.id })
    }
  }

  /** No request, no obstacle, and no other resident task on its GPUs. */
  #isLeftAlone(placement: PlacementReading): boolean {
    const { entry, stopping, isOver, gpus, task } = placement
    if (
      entry !== null ||
      stopping !== null ||
      isOver ||
      task.state !== 'running' ||
      this.#sentAway.has(task.spec.id)
    )
      return false
    if (isClosed(placement) || waitsThere(placement).length > 0) return false
    return gpus.every(
      (gpu) => isDeserted(gpu) && gpu.capacityMib - gpu.noswapResidentMib >= movableMib(placement),
    )
  }

  #judge(taskId: string): void {
    const placement = this.#world.controller.cluster.tasks.get(taskId)?.placement ?? null
    if (placement === null) return
    const tell = (what: string): void =>
      this.#report(`it returns eagerly ${what}`, { taskId, nodeId: placement.node.id })
    const [waiting] = waitsThere(placement)
    if (waiting !== undefined) tell(`while ${waiting} waits for VRAM there`)
    const { eagerSwapInMs } = this.#world.controller.cluster.policy
    const outMs = this.#world.clock.now() - (placement.swappedOutSince ?? 0)
    if (eagerSwapInMs === null || outMs < eagerSwapInMs) tell(`after ${outMs} ms`)
    if (this.#sentAway.has(taskId)) tell('although an operator swapped it out')
    if (isClosed(placement)) tell('to a closed node')
    if (!leavesEnough(placement)) tell('and leaves too little VRAM free')
    if (
      placement.gpus.some(
        (gpu) => gpu.placements.filter(({ residency }) => residency === 'swapping_in').length > 1,
      )
    )
      tell('while another task returns there')
    const earlier = absentLonger(placement, this.#sentAway, this.#world.clock.now())
    if (earlier !== null) tell(`before ${earlier}, which has been out for longer`)
  }
}

function isClosed({ node }: PlacementReading): boolean {
  return node.status !== 'up' || node.isCordoned || node.autoCordon !== null || node.drain !== null
}

/** Ids of tasks that wait in the queue of the node on one of its GPUs. */
function waitsThere({ node, gpus }: PlacementReading): readonly string[] {
  return node.queue
    .filter((entry) => entry.gpus.some((gpu) => gpus.includes(gpu)))
    .map(({ task }) => task.spec.id)
}

/** Its own bytes already count as resident. */
function leavesEnough(placement: PlacementReading): boolean {
  const isRoomy = placement.gpus.every(
    (gpu) => freeMib(gpu) >= Math.max(LEAST_LEFT_MIB, Math.floor(gpu.physicalMib / 10)),
  )
  const isAlone = placement.gpus.every((gpu) =>
    gpu.placements.every((one) => one === placement || one.residency === 'swapped_out'),
  )
  return isRoomy || (isAlone && placement.gpus.every((gpu) => freeMib(gpu) >= 0))
}

function freeMib({ capacityMib, noswapResidentMib, swappableResidentMib }: GpuReading): number {
  return capacityMib - noswapResidentMib - swappableResidentMib
}

function movableMib({ demandMib, residualMib }: PlacementReading): Mib {
  return demandMib - residualMib
}

function isDeserted({ placements, pendingClaimants }: GpuReading): boolean {
  return pendingClaimants.length === 0 && placements.every(({ residency }) => residency === 'swapped_out')
}

/** A task on the same GPUs that needs no more VRAM, has been out for longer, and could return. */
function absentLonger(
  placement: PlacementReading,
  sentAway: ReadonlySet<string>,
  now: Instant,
): string | null {
  const { node, gpus, swappedOutSince } = placement
  for (const other of new Set(node.gpus.flatMap((gpu) => [...gpu.placements]))) {
    const { task, residency, entry, stopping, backOffUntil, isOver } = other
    const isFree =
      residency === 'swapped_out' &&
      entry === null &&
      stopping === null &&
      !isOver &&
      task.state === 'running'
    if (
      !isFree ||
      backOffUntil > now ||
      sentAway.has(task.spec.id) ||
      movableMib(other) > movableMib(placement)
    )
      continue
    const isSame = other.gpus.length === gpus.length && other.gpus.every((gpu) => gpus.includes(gpu))
    if (isSame && (other.swappedOutSince ?? Infinity) < (swappedOutSince ?? 0)) return task.spec.id
  }
  return null
}
