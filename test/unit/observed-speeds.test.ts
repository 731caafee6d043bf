/** Speeds that are learned from the events of a simulated cluster, whose true speeds are known. */
import { describe, expect, it } from 'vitest'
import { isForecast, type NodeSpeeds, type RecentPast } from '../../controller/ports/twin.ts'
import type { Placement } from '../../controller/model/placement.ts'
import { RecentPastReader } from '../../services/twin/recent-past.ts'
import { assumedSpeeds, learnedModels } from '../../simulator/calibration/learned-models.ts'
import { MAX_OBSERVED, ObservedSpeeds } from '../../simulator/calibration/observed-speeds.ts'
import { workloadOf } from '../../simulator/scenario/generate.ts'
import { idOfNode } from '../../simulator/scenario/node-id.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { SWAP_PROFILES } from '../../simulator/scenario/swap-profiles.ts'
import { snapshotOfLive } from '../../simulator/twin/live-snapshot.ts'
import { forecastStarts } from '../../simulator/twin/start-forecast.ts'
import { World } from '../../simulator/world/world.ts'

const HOUR_MS = 3_600_000

/** Copies take three times as long as with the stock driver, starts 4 s. */
const SLOW = '{ out_mib_per_s: 1024, out_fixed_ms: 1500, in_mib_per_s: 1700, in_fixed_ms: 2400 }'
const IDLERS = `
scenario: idlers
version: 1
fleet: [{ name: slow, gpu: { vram_mib: 40000, swap: ${SLOW}, start_ms: 4000 } }]
config: { default_vram_overcommit_percent: 100, idle_swap_out_seconds: 60 }
workload:
  - { generate: poisson, rate_per_hour: 20, until: 8h, vram_mib: { choice: { 9000: 1, 15000: 1, 22000: 1 } },
      duration: { exponential: { mean: 30m } }, activity: serving }
`

async function observed(text: string, atMs: number) {
  const { scenario } = loadScenario({ text, baseDir: '.' })
  const world = new World(scenario, { seed: 1, isJournalOff: true, keepsTasks: true })
  const speeds = new ObservedSpeeds()
  const placementOf = (id: string | null): Placement | null =>
    (id === null ? undefined : world.controller.views.openTask(id))?.placement ?? null
  world.listen((events) => {
    for (const event of events) speeds.see(event, placementOf(event.taskId))
  })
  await world.start()
  world.feed(workloadOf(scenario, world.random))
  await world.runUntil(atMs)
  const past: RecentPast = await new RecentPastReader(world.controller.views, () => speeds.all()).read()
  return { world, scenario, past, image: world.controller.views.snapshot() }
}

const slow = await observed(IDLERS, 8 * HOUR_MS)
const [learned] = slow.past.speeds as [NodeSpeeds]

describe('the speeds of a node', () => {
  it('are those of its GPUs within a percent, learned from events only', () => {
    const [driver] = learned.methods
    expect(learned.methods).toHaveLength(1)
    expect(driver).toMatchObject({ method: 'driver', residualMib: 0, out: { observed: MAX_OBSERVED } })
    for (const [copies, fixedMs, mibPerS] of [
      [driver?.out, 1500, 1024],
      [driver?.in, 2400, 1700],
    ] as const) {
      expect(Math.abs((copies?.mibPerS ?? 0) / mibPerS - 1)).toBeLessThan(0.01)
      expect(Math.abs((copies?.fixedMs ?? 0) / fixedMs - 1)).toBeLessThan(0.01)
      expect(copies?.errorPercent).toBeLessThan(1)
      expect(copies?.profileErrorPercent).toBeGreaterThan(50)
    }
    expect(learned.starts).toEqual({ observed: MAX_OBSERVED, ms: 4000 })
  })

  it('are in the snapshot of the cluster, which says where they come from', () => {
    const { snapshot, description } = snapshotOfLive(slow.image, slow.past)
    const gpu = snapshot.nodes[0]?.gpu
    expect(gpu?.swap.outMibPerS).toBe(learned.methods[0]?.out.mibPerS)
    expect(gpu?.startMs).toBe(4000)
    expect(description).toContain('swaps take as long as the latest 64 on 1 node')
  })

  it('are those of each swap method, with what its tasks keep in VRAM', async () => {
    const hooks = `swap_hooks: { swap: { out_mib_per_s: 24000, in_mib_per_s: 20000 }, residual_mib: 400 }`
    const text = IDLERS.replace('start_ms: 4000', hooks).replace('activity:', 'swap_method: hooks, activity:')
    const { past, image } = await observed(text, 8 * HOUR_MS)
    const [method] = past.speeds[0]?.methods ?? []
    expect(past.speeds[0]?.methods).toHaveLength(1)
    expect(method).toMatchObject({ method: 'hooks', residualMib: 400, out: { observed: MAX_OBSERVED } })
    expect(Math.abs((method?.out.mibPerS ?? 0) / 24_000 - 1)).toBeLessThan(0.02)
    expect(Math.abs((method?.in.mibPerS ?? 0) / 20_000 - 1)).toBeLessThan(0.02)
    expect(snapshotOfLive(image, past).snapshot.nodes[0]?.gpu).toMatchObject({
      swap: SWAP_PROFILES['stock-driver'],
      swapMethods: { hooks: { residualMib: 400, swap: { outMibPerS: method?.out.mibPerS } } },
    })
  })

  it('are the profile for a node without observations', () => {
    const models = learnedModels(slow.past.speeds)
    expect(models('another')).toEqual({
      swap: SWAP_PROFILES['stock-driver'],
      efficiencyPermille: [1000],
      startMs: 0,
    })
    expect(assumedSpeeds([])).toContain('none was observed yet')
  })

  it('change the forecasts of starts', async () => {
    const id = idOfNode({ name: 'slow' })
    expect(learned.nodeId).toBe(id)
    const budget = { spent: () => 0, maxRuns: 3, horizonMs: HOUR_MS }
    const [fitted, stock] = [
      await forecastStarts(slow.image, slow.past, budget),
      await forecastStarts(slow.image, { ...slow.past, speeds: [] }, budget),
    ]
    if (!isForecast(fitted) || !isForecast(stock)) throw new Error('no forecast')
    expect(fitted.assumes.join()).toContain('swaps take as long as the latest 64')
    expect(stock.assumes.join()).toContain('swaps take as long as with the stock driver')
    expect([...fitted.starts]).not.toEqual([...stock.starts])
  })
})

describe('a copy', () => {
  const event = { seq: 1, causedBy: null, by: null, nodeId: 'n' }
  const node = { id: 'n', hostLinkMibPerS: null as number | null }
  const placed = (id: string, gpu: number, on = node): Placement =>
    ({
      task: { spec: { id } },
      node: on,
      gpus: [{ index: gpu }],
      demandMib: 6144,
      residualMib: 0,
    }) as unknown as Placement
  const move = (speeds: ObservedSpeeds, at: number, placement: Placement, residency: string): void =>
    speeds.see(
      { ...event, at, kind: 'task_residency', taskId: placement.task.spec.id, data: { residency } },
      placement,
    )
  const outs = (speeds: ObservedSpeeds) => speeds.all()[0]?.methods[0]?.out.observed ?? 0

  it('that shares its GPU with another is not an observation, nor is the other', () => {
    const speeds = new ObservedSpeeds()
    const [a, b, c] = [placed('a', 0), placed('b', 0), placed('c', 1)]
    move(speeds, 0, a, 'swapping_out')
    move(speeds, 5, b, 'swapping_in')
    move(speeds, 9, c, 'swapping_out')
    for (const [task, ends] of [
      [a, 'swapped_out'],
      [b, 'resident'],
      [c, 'swapped_out'],
    ] as const)
      move(speeds, 2000, task, ends)
    expect(speeds.all()).toMatchObject([{ methods: [{ out: { observed: 1 }, in: { observed: 0 } }] }])
  })

  it('on another GPU counts only where the host limits all copies together', () => {
    const speeds = new ObservedSpeeds()
    const linked = { ...node, hostLinkMibPerS: 8000 }
    const [a, b] = [placed('a', 0, linked), placed('b', 1, linked)]
    move(speeds, 0, a, 'swapping_out')
    move(speeds, 5, b, 'swapping_out')
    move(speeds, 2000, a, 'swapped_out')
    move(speeds, 2000, b, 'swapped_out')
    expect(speeds.all()).toEqual([])
  })

  it('that fails, or whose task ends or is out of reach meanwhile, is not an observation', () => {
    const speeds = new ObservedSpeeds()
    const a = placed('a', 0)
    move(speeds, 0, a, 'swapping_out')
    move(speeds, 900, a, 'resident')
    for (const kind of ['task_finished', 'task_returned', 'task_unreachable'] as const) {
      move(speeds, 1000, a, 'swapping_out')
      speeds.see({ ...event, at: 1500, kind, taskId: 'a', data: {} }, null)
      move(speeds, 3000, a, 'swapped_out')
    }
    expect(outs(speeds)).toBe(0)
    move(speeds, 4000, a, 'swapping_out')
    move(speeds, 6000, a, 'swapped_out')
    expect(outs(speeds)).toBe(1)
  })

  it('of a node that is forgotten is forgotten', () => {
    const speeds = new ObservedSpeeds()
    const a = placed('a', 0)
    move(speeds, 0, a, 'swapping_out')
    move(speeds, 2000, a, 'swapped_out')
    speeds.see({ ...event, at: 3000, kind: 'node_forgotten', taskId: null, data: {} }, null)
    expect(speeds.all()).toEqual([])
  })
})
