/** Tasks of eight events for the replays, generated on demand. */
import type { Random, RandomStream } from '../../controller/ports/random.ts'
import { exponential, lognormal } from '../../simulator/kernel/distributions.ts'
import { SERVING_BUSY_RUNS, SERVING_IDLE_RUNS } from '../../simulator/trace/activity.ts'
import { type ArrivalSource, makeSource } from '../../simulator/scenario/arrivals.ts'
import type { SimTask } from '../../simulator/scenario/scenario.ts'
import type { Work } from '../../simulator/trace/trace-format.ts'
import { stopsAfter } from './stopwatch.ts'

export const VRAM_MIB = 40_960
const CAPACITY_MIB = VRAM_MIB - 2048
/** Share of the capacity that open tasks fill on average. */
const LOAD = 0.75
const DEMAND_MIB = lognormal(16_000, 0.4)
const TWO_GPUS_SHARE = 0.1
const P0_SHARE = 0.1
const NOSWAP_SHARE = 0.05
/** Alternating busy and idle: six phases, so five changes. */
const PHASES = 3
/** No task arrives after this much CPU time: a run far from its floor is cut short and reported so. */
const BUDGET_S = 60
const LOOK_EVERY = 1_000

export function replayArrivals(taskCount: number, gpus: number): (random: Random) => ArrivalSource {
  const residenceMs = PHASES * (SERVING_BUSY_RUNS.mean + SERVING_IDLE_RUNS.mean)
  const open = (LOAD * gpus * CAPACITY_MIB) / (DEMAND_MIB.mean * (1 + TWO_GPUS_SHARE))
  const gapMs = exponential(residenceMs / open)
  return (random) => {
    const gap = random.stream('bench/gap')
    const taskAt = taskMaker(random)
    const isOverBudget = stopsAfter(BUDGET_S)
    let made = 0
    let atMs = 0
    return makeSource(() => {
      if (made === taskCount || (made % LOOK_EVERY === 0 && isOverBudget())) return null
      atMs += gapMs.sample(gap)
      return taskAt(made++, Math.floor(atMs))
    })
  }
}

function taskMaker(random: Random): (number: number, at: number) => SimTask {
  const stream = (purpose: string): RandomStream => random.stream(`bench/${purpose}`)
  const [gpus, vram, noswap, priority, activity] = [
    stream('gpus'),
    stream('vram'),
    stream('noswap'),
    stream('priority'),
    stream('activity'),
  ]
  return (number, at) => ({
    at,
    request: {
      id: `t${number}`,
      name: null,
      vramMib: Math.min(CAPACITY_MIB, Math.round(DEMAND_MIB.sample(vram))),
      gpuCount: gpus() < TWO_GPUS_SHARE ? 2 : 1,
      gpuMode: 'shared',
      noswap: noswap() < NOSWAP_SHARE ? 1 : 0,
      priority: priority() < P0_SHARE ? 0 : 2,
      groups: NO_GROUPS,
      labels: NO_LABELS,
      owner: null,
      command: null,
      maxRuntimeSeconds: null,
      onNodeLoss: 'wait',
    },
    work: phasesFrom(activity),
    allocSteps: NO_STEPS,
    cancelAt: null,
  })
}

function phasesFrom(random: RandomStream): Work {
  const phases: Array<readonly [busyMs: number, idleMs: number]> = []
  while (phases.length < PHASES)
    phases.push([wholeMs(SERVING_BUSY_RUNS.sample(random)), wholeMs(SERVING_IDLE_RUNS.sample(random))])
  return { kind: 'phases', phases }
}

const NO_GROUPS = Object.freeze([])
const NO_LABELS = Object.freeze({})
const NO_STEPS = Object.freeze([])

function wholeMs(ms: number): number {
  return Math.max(1, Math.round(ms))
}
