import { describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import type { Event } from '../../controller/domain/event.ts'
import { createLiveFleet } from '../../simulator/live.ts'
import type { RealTime } from '../../simulator/paced-clock.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'

const SCENARIO = `
scenario: live
version: 1
fleet: [{ name: a, gpu: { vram_mib: 40960 } }]
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

/** Real time that a test moves; what is asked for "soon" or "after" runs when it does. */
function manualTime(start: number): RealTime & { advance(ms: number): Promise<void> } {
  let now = start
  let planned: { at: number; fn: () => void }[] = []
  return {
    now: () => now,
    after(ms, fn) {
      const entry = { at: now + ms, fn }
      planned.push(entry)
      return () => {
        planned = planned.filter((each) => each !== entry)
      }
    },
    soon: (fn) => {
      planned.push({ at: now, fn })
    },
    async advance(ms) {
      const until = now + ms
      for (let due = planned.find((each) => each.at <= until); due !== undefined; due = planned.find((each) => each.at <= until)) {
        planned = planned.filter((each) => each !== due)
        now = Math.max(now, due.at)
        due.fn()
        await Promise.resolve()
      }
      now = until
    },
  }
}

async function startedFleet() {
  const real = manualTime(1_000_000)
  const events: Event[] = []
  const { scenario } = loadScenario({ text: SCENARIO, baseDir: '.' })
  const fleet = createLiveFleet({
    scenario,
    store: createMemoryStore(),
    real,
    startAt: real.now(),
    seed: 'live',
    controller: { onEvents: (batch) => void events.push(...batch) },
  })
  await fleet.start()
  await real.advance(10)
  const { commands } = fleet.controller
  return { fleet, real, commands, kindsOf: (id: string) => events.filter((event) => event.taskId === id).map((event) => event.kind) }
}

describe('a fleet in real time', () => {
  it('starts what is submitted, as time comes to it', async () => {
    const { real, commands, kindsOf } = await startedFleet()
    commands.submitTask({ ...WHOLE, vramMib: 1_000 }, () => {})
    await real.advance(10)
    expect(kindsOf('whole')).toEqual(['task_submitted', 'task_placed', 'task_started'])
  })

  it('tells its servers a new reserve, so that what fits by it is started', async () => {
    const { real, commands, kindsOf } = await startedFleet()
    commands.submitTask(WHOLE, () => {})
    await real.advance(10)
    expect(kindsOf('whole')).toEqual(['task_submitted'])
    commands.putConfig({ safety_reserve_mib: 0 }, null, () => {})
    await real.advance(10)
    expect(kindsOf('whole')).toEqual(['task_submitted', 'task_placed', 'task_started'])
  })
})
