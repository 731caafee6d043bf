/**
 * `max_requeues` (safety 3): attempts that end soon after their start are followed by a delay, and their
 * number is limited.
 */
import { describe, expect, it } from 'vitest'
import { FaultWorld } from '../support/fault-world.ts'

const HOUR = 3_600_000

async function worldOf(max?: number | null): Promise<FaultWorld> {
  const world = new FaultWorld({
    nodes: 1,
    config: {
      heartbeat_seconds: 1,
      run_lease_seconds: 15,
      ...(max === undefined ? {} : { max_requeues: max }),
    },
  })
  await world.startAll()
  return world
}

/** Its guard disappears soon after each start, so the server reports the attempt as lost. */
async function keepLosing(world: FaultWorld, id: string, ms: number): Promise<void> {
  const end = world.nowMs + ms
  while (world.nowMs < end && !world.isFinal(id)) {
    if (world.stateOf(id) === 'running') world.loseProcess('n1', id)
    await world.run(50)
  }
}

describe('a task that ends its own guard', () => {
  it('is not started 9 times in 10 s: the delay doubles from 10 s', async () => {
    const world = await worldOf()
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'requeue' })
    await keepLosing(world, 't', 10_000)
    expect(world.eventsOf('task_placed', 't').length).toBeLessThanOrEqual(2)
    await keepLosing(world, 't', HOUR)
    const waits = world.eventsOf('task_paused', 't').map(({ at, data }) => Number(data['until']) - at)
    expect(waits).toEqual([10_000, 20_000, 40_000, 80_000, 160_000])
  })

  it('fails with requeue_limit after max_requeues, 5 by default', async () => {
    const world = await worldOf()
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'requeue' })
    await keepLosing(world, 't', HOUR)
    expect(world.stateOf('t')).toBe('failed')
    expect(world.eventsOf('task_started', 't')).toHaveLength(6)
    expect(world.eventsOf('task_finished', 't')[0]?.data).toMatchObject({
      state: 'failed',
      code: 'requeue_limit',
    })
  })

  it.each([
    [0, 1],
    [2, 3],
  ])('with a limit of %i is started %i times', async (max, starts) => {
    const world = await worldOf(max)
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'requeue' })
    await keepLosing(world, 't', HOUR)
    expect([world.stateOf('t'), world.eventsOf('task_started', 't').length]).toEqual(['failed', starts])
  })

  it('without a limit is started again at least every 10 minutes', async () => {
    const world = await worldOf(null)
    world.submit({ id: 't', ms: 24 * HOUR, onNodeLoss: 'requeue' })
    await keepLosing(world, 't', 3 * HOUR)
    expect(world.isFinal('t')).toBe(false)
    const waits = world.eventsOf('task_paused', 't').map(({ at, data }) => Number(data['until']) - at)
    expect(Math.max(...waits)).toBe(600_000)
  })

  it('does not count an attempt that ran for 10 minutes', async () => {
    const world = await worldOf(0)
    world.submit({ id: 't', ms: 24 * HOUR, onNodeLoss: 'requeue' })
    expect(await world.until(() => world.stateOf('t') === 'running', 10_000)).toBe(true)
    await world.run(11 * 60_000)
    world.loseProcess('n1', 't')
    expect(await world.until(() => world.eventsOf('task_started', 't').length === 2, 10_000)).toBe(true)
    expect(world.eventsOf('task_paused', 't')).toEqual([])
  })

  it('is started at once when it is released', async () => {
    const world = await worldOf()
    world.submit({ id: 't', ms: HOUR, onNodeLoss: 'requeue' })
    expect(await world.until(() => world.stateOf('t') === 'running', 10_000)).toBe(true)
    world.loseProcess('n1', 't')
    expect(await world.until(() => world.stateOf('t') === 'pending', 10_000)).toBe(true)
    expect(world.controller.views.openTask('t')?.trouble.pause?.reason).toBe('REQUEUE_DELAY')
    world.controller.commands.releaseTask('t', 'alice', () => {})
    expect(await world.until(() => world.stateOf('t') === 'running', 1_000)).toBe(true)
  })
})
