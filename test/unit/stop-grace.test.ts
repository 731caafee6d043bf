/** Stopping a task with a grace period, in virtual time with production code on both sides. */
import { describe, expect, it } from 'vitest'
import { ServerCoreHarness, KILLED } from '../support/server-core-harness.ts'
import { FaultWorld } from '../support/fault-world.ts'

const HOUR = 3_600_000
const stops = (h: ServerCoreHarness): string[] => h.device.calls.filter((call) => call.startsWith('stop'))

describe('a server that receives a stop', () => {
  it('passes the grace to the device, and a second stop only to end the task at once', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    expect(h.stop('a', 1, 30_000)).toMatchObject({ outcome: 'accepted' })
    expect(h.stop('a', 1, 30_000)).toMatchObject({ outcome: 'accepted' })
    expect(stops(h)).toEqual(['stop within 30000 a'])
    h.stop('a')
    expect(stops(h)).toEqual(['stop within 30000 a', 'stop a'])
    h.exit('a', KILLED)
    expect(h.bus.finishedOf('a')).toEqual(['stopped'])
  })

  it('lets a swapped-out task return to handle SIGTERM, and refuses other swaps', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.run('b')
    h.swappedOut('a')
    h.stop('a', 1, 30_000)
    h.stop('b', 1, 30_000)
    expect(h.swapIn('a')).toMatchObject({ outcome: 'accepted' })
    expect(h.swapOut('b')).toMatchObject({ outcome: 'refused', reason: 'contrary' })
  })

  it('kills attempts at once that the controller gave up', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.bus.script.heartbeat = () => ({
      op: 'lease',
      settings: h.bus.settings,
      stop: [{ task_id: 'a', attempt: 1 }],
    })
    h.advance(20_000)
    expect(stops(h)).toEqual(['stop a'])
  })

  it('remembers the stop after a restart', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.stop('a', 1, 30_000)
    h.bounce()
    expect(h.swapOut('a', { generation: h.report('a')?.generation ?? 0 })).toMatchObject({
      outcome: 'refused',
      reason: 'contrary',
    })
  })
})

describe('a cancelled task', () => {
  const world = async (stopTakesMs: number, config = {}): Promise<FaultWorld> => {
    const world = new FaultWorld({ nodes: 1, config })
    await world.startAll()
    world.submit({ id: 't', ms: HOUR, stopTakesMs })
    expect(await world.until(() => world.stateOf('t') === 'running', 5_000)).toBe(true)
    await world.run(100)
    return world
  }
  const cancel = (w: FaultWorld, isNow = false): void =>
    isNow
      ? w.controller.commands.cancelTaskNow('t', 'a', () => {})
      : w.controller.commands.cancelTask('t', 'a', () => {})
  const stoppingOf = (w: FaultWorld) => w.controller.views.openTask('t')?.placement?.stopping

  it('keeps running while it handles SIGTERM, and its VRAM counts until its end is reported', async () => {
    const w = await world(10_000)
    cancel(w)
    await w.run(9_000)
    expect(w.stateOf('t')).toBe('running')
    expect(stoppingOf(w)).toMatchObject({ then: 'cancelled', graceMs: 30_000 })
    await w.run(2_000)
    expect(w.eventsOf('task_finished', 't')[0]?.data).toMatchObject({ state: 'cancelled' })
    expect(w.violations).toEqual([])
  })

  it('ends by the end of the grace', async () => {
    const w = await world(HOUR, { stop_grace_seconds: 5 })
    cancel(w)
    await w.run(4_500)
    expect(w.isFinal('t')).toBe(false)
    await w.run(1_500)
    expect(w.isFinal('t')).toBe(true)
  })

  it('ends at once when it is cancelled again with now', async () => {
    const w = await world(HOUR)
    cancel(w)
    await w.run(1_000)
    cancel(w, true)
    await w.run(500)
    expect(w.isFinal('t')).toBe(true)
  })

  it('has its latest grace, while a stop in progress keeps the earlier one', async () => {
    const w = await world(HOUR, { stop_grace_seconds: 5 })
    const change = (stopGraceSeconds: number | null): void =>
      w.controller.commands.updateTask('t', { stopGraceSeconds }, 'a', () => {})
    change(20)
    cancel(w)
    change(1)
    await w.run(19_000)
    expect(w.isFinal('t')).toBe(false)
    await w.run(2_000)
    expect(w.isFinal('t')).toBe(true)
  })

  it('is counted as stopping, and raises STOP_OVERDUE a minute after the grace', async () => {
    const w = await world(10_000, { run_lease_seconds: 300 })
    const alarms = (): string[] => w.controller.views.alarms().map(({ code }) => code)
    expect(w.controller.views.stoppingCount()).toBe(0)
    w.network.cutOff.add('n1')
    cancel(w)
    await w.run(89_000)
    expect([w.controller.views.stoppingCount(), alarms()]).toEqual([1, []])
    await w.run(2_000)
    expect([w.stateOf('t'), w.controller.views.stoppingCount(), alarms()]).toEqual([
      'running',
      1,
      ['STOP_OVERDUE'],
    ])
    w.network.cutOff.delete('n1')
    expect(await w.until(() => w.isFinal('t'), 60_000)).toBe(true)
    expect([w.controller.views.stoppingCount(), alarms()]).toEqual([0, []])
  })

  it('keeps its deadline over a restart of the controller during the grace', async () => {
    const w = await world(HOUR, { stop_grace_seconds: 20 })
    cancel(w)
    await w.run(8_000)
    w.restartController()
    await w.run(11_000)
    expect(w.isFinal('t')).toBe(false)
    expect(stoppingOf(w)).toMatchObject({ then: 'cancelled' })
    await w.run(3_000)
    expect(w.isFinal('t')).toBe(true)
    expect(w.eventsOf('task_finished', 't')[0]?.data).toMatchObject({ state: 'cancelled' })
  })
})
