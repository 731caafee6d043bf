import { describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import type { Event } from '../../controller/model/event.ts'
import { createLiveFleet } from '../../simulator/world/live.ts'
import { snapshotOf } from '../../simulator/snapshot/snapshot.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { manualTime } from '../support/manual-time.ts'

const SCENARIO = `
scenario: live
version: 1
fleet: [{ name: a, gpu: { vram_mib: 40960 } },
  { name: b, gpu: { vram_mib: 1024 }, host_link_mib_per_s: 12288 }]
`

const WHOLE = {
  id: 'whole',
  name: null,
  vramMib: 40_960,
  gpuCount: 1,
  gpuMode: 'shared',
  noswap: 0,
  priority: 2,
  groups: [],
  labels: {},
  owner: null,
  command: ['x'],
  maxRuntimeSeconds: null,
  onNodeLoss: 'wait',
} as const

async function startedFleet(store = createMemoryStore(), startMs = 1_000_000) {
  const real = manualTime(startMs)
  const events: Event[] = []
  const { scenario } = loadScenario({ text: SCENARIO, baseDir: '.' })
  const fleet = createLiveFleet({
    scenario,
    store,
    real,
    startAt: real.now(),
    seed: 'live',
    controller: { onEvents: (batch) => void events.push(...batch) },
  })
  await fleet.start()
  await real.advance(10)
  const { commands } = fleet.controller
  return {
    fleet,
    real,
    commands,
    lastOf: (id: string) => events.findLast((event) => event.taskId === id),
    kindsOf: (id: string) => events.filter((event) => event.taskId === id).map((event) => event.kind),
  }
}

describe('a fleet in real time', () => {
  it('A live fleet starts submitted tasks as time passes', async () => {
    const { real, commands, kindsOf } = await startedFleet()
    commands.submitTask({ ...WHOLE, vramMib: 1_000 }, () => {})
    await real.advance(10)
    expect(kindsOf('whole')).toEqual(['task_submitted', 'task_placed', 'task_started'])
  })

  it('A live fleet reports the host link bandwidth of its hosts, also in snapshots', async () => {
    const { fleet } = await startedFleet()
    const image = fleet.controller.views.snapshot()
    expect(image.nodes.map(({ name, hostLinkMibPerS = null }) => [name, hostLinkMibPerS])).toEqual([
      ['a', null],
      ['b', 12_288],
    ])
    const { nodes } = snapshotOf(image, {
      workLeftOf: () => ({ work: { kind: 'duration', ms: 1 }, doneUs: 0 }),
    })
    expect(nodes.map(({ name, hostLinkMibPerS = null }) => [name, hostLinkMibPerS])).toEqual([
      ['a', null],
      ['b', 12_288],
    ])
  })

  it('A live fleet sends its servers a new reserve, so that tasks that fit are started', async () => {
    const { real, commands, kindsOf } = await startedFleet()
    commands.submitTask(WHOLE, () => {})
    await real.advance(10)
    expect(kindsOf('whole')).toEqual(['task_submitted'])
    commands.putConfig({ safety_reserve_mib: 0 }, null, () => {})
    await real.advance(10)
    expect(kindsOf('whole')).toEqual(['task_submitted', 'task_placed', 'task_started'])
  })

  it('A live fleet that starts again cancels tasks that ran, or repeats those that may be', async () => {
    const store = createMemoryStore()
    const first = await startedFleet(store)
    for (const onNodeLoss of ['wait', 'fail', 'requeue'] as const)
      first.commands.submitTask({ ...WHOLE, id: onNodeLoss, vramMib: 1_000, onNodeLoss }, () => {})
    await first.real.advance(1_000)
    await first.fleet.stop()
    const second = await startedFleet(store, 1_060_000)
    await second.real.advance(60_000)
    expect(['wait', 'fail', 'requeue'].map(second.lastOf)).toMatchObject([
      { kind: 'task_finished', data: { state: 'cancelled' } },
      { kind: 'task_finished', data: { state: 'cancelled' } },
      { kind: 'task_started', data: { attempt: 2 } },
    ])
    await second.fleet.stop()
  })
})
