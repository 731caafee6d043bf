/**
 * Draws tasks that do not all fit at once, with idle times around the idle period, and all fields of a task.
 */
import type { DurationMs, Mib } from '../../../protocol/units.ts'
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry, Value } from './document.ts'
import { GROUPS, type DrawnNode } from './draw-fleet.ts'
import type { Features } from './features.ts'

const CROWD = 44

export interface WorkloadShape {
  /** Latest arrival of a task. */
  readonly arrivalsMs: DurationMs
  readonly idlePeriodMs: DurationMs
}

/** Entries by time of arrival; ids are t0, t1, … in that order. */
export function drawWorkload(
  dice: FuzzRandom,
  nodes: readonly DrawnNode[],
  features: Features,
  shape: WorkloadShape,
): Entry[] {
  const isCrowd = features.on.has('crowd') && dice.chance(40)
  const count = isCrowd ? CROWD : dice.between(3, 14)
  const ats = Array.from({ length: count }, () =>
    dice.chance(30) ? 0 : dice.below(isCrowd ? 5_000 : shape.arrivalsMs),
  )
  ats.sort((a, b) => a - b)
  return ats.map((at, index) => ({
    task: drawTask(dice, nodes, features, shape, { id: `t${index}`, at, isCrowd }),
  }))
}

interface Arrival {
  readonly id: string
  readonly at: DurationMs
  readonly isCrowd: boolean
}

function drawTask(
  dice: FuzzRandom,
  nodes: readonly DrawnNode[],
  { on, faults }: Features,
  shape: WorkloadShape,
  arrival: Arrival,
): Entry {
  const { id, at, isCrowd } = arrival
  const mostGpus = nodes.reduce((most, { gpus }) => Math.max(most, gpus), 1)
  const isExclusive = on.has('exclusive') && dice.chance(20)
  const vramMib = isCrowd ? dice.between(1, 30) : drawMib(dice)
  const task: Record<string, Value> = { id, at: `${at}ms` }
  if (!isExclusive || dice.chance(50)) task['vram_mib'] = vramMib
  if (on.has('multi_gpu') && dice.chance(40)) task['gpus'] = dice.between(1, mostGpus)
  if (isExclusive) task['gpu_mode'] = 'exclusive'
  if (on.has('noswap') && dice.chance(30)) task['noswap'] = 1
  if (on.has('priorities')) task['priority'] = dice.oneOf([0, 0, 1, 2, 4])
  // Sometimes a group without nodes.
  const there = dice.chance(8)
    ? GROUPS
    : GROUPS.filter((group) => nodes.some(({ groups: names }) => names.includes(group)))
  const groups = on.has('target_groups') && dice.chance(50) ? dice.some(there, 70) : []
  if (groups.length > 0) task['groups'] = groups
  if (on.has('policies') || faults.length > 0)
    task['on_node_loss'] = dice.oneOf(['wait', 'fail', 'requeue', 'requeue'])
  if (on.has('runtimes') && dice.chance(25)) task['max_runtime_seconds'] = dice.oneOf([5, 30, 120])
  task['work'] = drawWork(dice, on, faults.length > 0, shape.idlePeriodMs)
  if (on.has('growth') && !isExclusive && dice.chance(40))
    task['alloc'] = drawGrowth(dice, vramMib, faults.length > 0)
  if (on.has('cancels') && dice.chance(25)) task['cancel_at'] = `${at + dice.below(shape.arrivalsMs)}ms`
  return task
}

function drawMib(dice: FuzzRandom): Mib {
  return dice.chance(15) ? 500 : dice.chance(50) ? dice.between(50, 300) : dice.between(300, 800)
}

/** Idle for slightly less or more than the idle period, or busy throughout. */
function drawWork(dice: FuzzRandom, on: Features['on'], isShort: boolean, idlePeriodMs: DurationMs): Entry {
  const longest = isShort ? 30_000 : 300_000
  if (dice.chance(20)) return { kind: 'duration', ms: 1 + dice.below(longest) }
  if (on.has('bursts') && dice.chance(30)) return drawBursts(dice, longest)
  const spells = dice.between(1, isShort ? 3 : 6)
  const phases = Array.from({ length: spells }, () => {
    const idleMs = dice.oneOf([
      0,
      idlePeriodMs - 1,
      idlePeriodMs,
      idlePeriodMs + 1_000,
      1 + dice.below(2 * idlePeriodMs),
    ])
    return [1 + dice.below(dice.oneOf([10, 2_000, longest])), idleMs]
  })
  return { kind: 'phases', phases }
}

function drawBursts(dice: FuzzRandom, longest: DurationMs): Entry {
  const offsets = Array.from({ length: dice.between(1, 4) }, () => dice.below(2 * longest)).sort(
    (a, b) => a - b,
  )
  return {
    kind: 'bursts',
    at: offsets.map((at) => [at, 1 + dice.below(5_000)]),
    stayMs: dice.below(2 * longest),
  }
}

function drawGrowth(dice: FuzzRandom, vramMib: Mib, isShort: boolean): Value {
  let [at, mib] = [0, vramMib]
  return Array.from({ length: dice.between(1, 2) }, () => {
    at += 1 + dice.below(isShort ? 20_000 : 240_000)
    mib += dice.between(1, 300)
    return [at, mib]
  })
}
