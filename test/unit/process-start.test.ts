/**
 * Process starts with a duration: their parts, an end or an inspection meanwhile, and the effect on a run.
 */
import { beforeEach, describe, expect, it } from 'vitest'
import type { AttemptEnd, DeviceListener } from '../../gpu-server/core/device.ts'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import { ProcessStart } from '../../simulator/fleet/process-start.ts'
import { SimulatedDevice } from '../../simulator/fleet/simulated-device.ts'
import { WorkCursor } from '../../simulator/fleet/work-cursor.ts'
import { planOf } from '../../simulator/fleet/work-plan.ts'
import { OpenWorkload } from '../../simulator/fleet/open-workload.ts'
import { runScenario, type RunOptions, type Run } from '../../simulator/run/run.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { snapshotText } from '../../simulator/snapshot/snapshot-text.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { World } from '../../simulator/world/world.ts'
import { snapshotOfWorld } from '../../simulator/snapshot/world-snapshot.ts'
import { workloadOf } from '../../simulator/scenario/generate.ts'
import { node } from '../support/world-builder.ts'

const START: AttemptStart = {
  taskId: 't',
  attempt: 1,
  gpus: [0],
  vramMib: 400,
  gpuMode: 'shared',
  noswap: 0,
  priority: 2,
  onNodeLoss: 'wait',
  isLease: false,
}

describe('a process start', () => {
  it('ends after its duration; a start of 0 ms ends in the same instant, but never inside the call', () => {
    const clock = new VirtualClock(1000)
    const seen: (readonly [string, number])[] = []
    for (const [name, startMs] of [
      ['slow', 250],
      ['none', 0],
    ] as const)
      // prettier-ignore
      new ProcessStart(clock, { startMs }).whenOver(() => seen.push([name, clock.now()]))
    new ProcessStart(clock, {}).whenOver(() => seen.push(['left out', clock.now()]))
    expect(seen).toEqual([])
    clock.run(2000, () => false)
    expect(seen).toEqual([
      ['none', 1000],
      ['left out', 1000],
      ['slow', 1250],
    ])
  })
})

describe('a device whose processes take 250 ms to start', () => {
  let clock: VirtualClock
  let device: SimulatedDevice
  let workload: OpenWorkload
  let told: unknown[]

  const listener: DeviceListener = {
    exited: (_task, _attempt, end: AttemptEnd) => told.push(['exited', clock.now(), end.detail]),
    gpuWanted: () => told.push(['wanted', clock.now()]),
    gpuUsed: () => told.push(['used', clock.now()]),
    allocationWanted: (_task, _attempt, mib) => told.push(['allocates', clock.now(), mib]),
    freeMeasured: () => {},
    restStays: () => false,
  }

  beforeEach(() => {
    const alike = node({ name: 'n' })
    clock = new VirtualClock(0)
    workload = new OpenWorkload()
    device = new SimulatedDevice(clock, { ...alike, gpu: { ...alike.gpu, startMs: 250 } }, workload)
    told = []
    device.observe(listener)
  })

  function launch(): void {
    const onUse = (wantsGpu: boolean): void => void told.push([wantsGpu ? 'wanted' : 'used', clock.now()])
    device.launch({ start: START, command: null, env: {}, onUse }, (launched) =>
      told.push(['launched', clock.now(), launched]),
    )
  }

  /** Runs to the end of that instant. */
  function runTo(ms: number): void {
    clock.at(ms, () => {})
    clock.run(ms, () => false)
  }

  it('begins its work and its growth when it has started', () => {
    workload.add('t', { kind: 'phases', phases: [[1000, 0]] }, [[500, 600]])
    launch()
    runTo(249)
    expect(told).toEqual([])
    runTo(750)
    device.answerAllocation('t', 1, 600, true)
    runTo(5000)
    expect(told).toEqual([
      ['launched', 250, { error: null, wantsGpu: true }],
      ['allocates', 750, 600],
      ['exited', 1250, null],
    ])
  })

  it('sends no start event if it is stopped before', () => {
    workload.add('t', { kind: 'duration', ms: 1000 }, [])
    launch()
    runTo(100)
    device.stop('t', 1, 0)
    runTo(5000)
    expect(told).toEqual([['exited', 100, 'stopped']])
  })

  it('does not start while it is frozen', () => {
    workload.add('t', { kind: 'duration', ms: 1000 }, [])
    launch()
    runTo(100)
    device.freeze('t', 1)
    runTo(2000)
    device.thaw('t', 1)
    runTo(5000)
    expect(told).toEqual([
      ['launched', 250, { error: null, wantsGpu: true }],
      ['exited', 3000, null],
    ])
  })

  it('is taken over by a new server, which learns when work begins; the old server receives nothing', () => {
    workload.add('t', { kind: 'duration', ms: 1000 }, [])
    launch()
    runTo(100)
    expect(device.survivors([])).toMatchObject([
      { start: { taskId: 't' }, end: null, residency: 'resident', wantsGpu: false, idleMs: 0 },
    ])
    runTo(5000)
    expect(told).toEqual([
      ['wanted', 250],
      ['exited', 1250, null],
    ])
  })

  it('has all its work left until then', () => {
    workload.add('t', { kind: 'duration', ms: 1000 }, [])
    launch()
    runTo(100)
    expect(device.workLeftOf('t')).toEqual({ work: { kind: 'duration', ms: 1000 }, doneUs: 0 })
    runTo(350)
    expect(device.workLeftOf('t')).toEqual({ work: { kind: 'duration', ms: 900 }, doneUs: 0 })
    const phases = { kind: 'phases', phases: [[5, 6]] } as const
    expect(new WorkCursor(planOf(phases), 3).workLeft(0, 0, 0)).toEqual(phases)
  })
})

describe('a run with start_ms', () => {
  const text = (gpu: string, rest = ''): string => `scenario: x
version: 1
seed: 1
fleet: [{ name: a, gpu: { vram_mib: 8192${gpu} } }]
config: { safety_reserve_mib: 0 }
workload:
  - { task: { id: first, at: 0s, vram_mib: 6000, run: 60s } }
  - { task: { id: second, at: 1s, vram_mib: 6000, run: 60s } }
${rest}`

  async function play(file: string, options: RunOptions = {}): Promise<Run & { readonly journal: string }> {
    let journal = ''
    const { scenario } = loadScenario({ text: file, baseDir: '.' })
    const identity = { scenarioSha256: null, traceSha256: null, version: 'test' }
    const run = await runScenario(scenario, identity, {
      ...options,
      journalSink: { write: (part) => (journal += part) },
    })
    return { ...run, journal }
  }

  it('counts it as waiting time, for every task in the queue', async () => {
    const { metrics } = (await play(text(', start_ms: 2000'))).result
    // 2 s; then 62 s until the first has ended, less 1 s, plus 2 s.
    expect(metrics.queue_wait_s?.mean).toBe((2 + 63) / 2)
    expect(metrics.makespan_s).toBe(124)
    expect(metrics.utilization_percent).toBeCloseTo((100 * 120) / 124, 9)
    expect(metrics.tasks.completed).toBe(2)
  })

  it('of 0 equals the run without it', async () => {
    const [none, zero] = [await play(text('')), await play(text(', start_ms: 0'))]
    expect(zero.result.digest).toBe(none.result.digest)
    expect((await play(text(', start_ms: 1'))).result.digest).not.toBe(none.result.digest)
  })

  it('loses no task when its server is killed during a start', async () => {
    const { result } = await play(
      text(', start_ms: 5000', 'clock: { until: 30m }\nfaults: [{ at: 2s, bounce: a }]\n'),
    )
    expect(result.faults?.bounce?.fired).toBe(1)
    expect(result.metrics.tasks).toEqual({ submitted: 2, completed: 2, failed: 0, unfinished: 0 })
  })

  it('is kept in a snapshot of its world', async () => {
    const { scenario } = loadScenario({ text: text(', start_ms: 2000'), baseDir: '.' })
    const world = new World(scenario, { seed: 1 })
    await world.start()
    world.feed(workloadOf(scenario, world.random))
    await world.runUntil(1500)
    const snapshot = snapshotOfWorld(world)
    expect(snapshot.tasks[0]?.work).toEqual({ kind: 'duration', ms: 60_000 })
    const again = loadScenario({
      text: [...snapshotText(snapshot, { name: 'x', description: 'x' })].join(''),
      baseDir: '.',
    })
    expect(again.scenario.nodes[0]?.gpu.startMs).toBe(2000)
  })
})

it.each([
  ['-1', 'fleet[0].gpu.start_ms'],
  ['3600001', 'fleet[0].gpu.start_ms'],
  ['1.5', 'fleet[0].gpu.start_ms'],
])('is refused by name if start_ms is %s', (value, named) => {
  const file = `scenario: x\nversion: 1\nfleet: [{ name: a, gpu: { vram_mib: 8192, start_ms: ${value} } }]\n`
  expect(() => loadScenario({ text: file, baseDir: '.' })).toThrow(named)
})
