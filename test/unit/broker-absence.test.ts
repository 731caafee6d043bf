/**
 * The controller has lost its own connection to the broker (safety 3): silence then says nothing about the
 * nodes. Leases last 10 s, with a margin of 5 s.
 */
import { describe, expect, it } from 'vitest'
import { FaultWorld } from '../support/fault-world.ts'

const HOUR = 3_600_000
const LEASE_OVER_MS = 15_500 + 1_100

/** Fewer nodes than the freeze on mass silence needs, each with tasks of every policy. */
async function smallWorld(): Promise<FaultWorld> {
  const world = new FaultWorld({ nodes: 3 })
  await world.startAll()
  for (const onNodeLoss of ['wait', 'fail', 'requeue'] as const) {
    for (let i = 0; i < 3; i++) world.submit({ id: `${onNodeLoss}${i}`, ms: HOUR, onNodeLoss, vramMib: 250 })
  }
  expect(await world.until(() => world.controller.views.counts().running === 9, 10_000)).toBe(true)
  await world.run(100)
  return world
}

describe('while the broker is unreachable for the controller', () => {
  it('no node becomes unreachable, however few there are, and no task is lost or requeued', async () => {
    const world = await smallWorld()
    world.network.stopBroker()
    // Longer than a lease and its margin: servers suspend tasks in time, and end them only after another
    // lease.
    await world.run(18_000)
    expect([...world.controller.views.nodes()].map(({ status }) => status)).toEqual([
      'suspect',
      'suspect',
      'suspect',
    ])
    world.restoreBroker()
    await world.run(60_000)
    expect(world.controller.views.counts()).toMatchObject({ running: 9, lost: 0, failed: 0 })
    expect(world.eventsOf('task_placed')).toHaveLength(9)
    expect(world.eventsOf('task_unreachable')).toEqual([])
    expect(world.violations).toEqual([])
  })

  it('a silent node becomes unreachable one lease after the broker returns, not earlier', async () => {
    const world = await smallWorld()
    world.network.stopBroker()
    await world.run(30_000)
    world.network.cutOff.add('n1')
    world.restoreBroker()
    await world.run(15_000)
    const status = () => world.controller.views.node(world.idOf('n1'))?.status
    expect(status()).toBe('suspect')
    expect(await world.until(() => status() === 'unreachable', LEASE_OVER_MS - 14_000)).toBe(true)
  })

  it('BROKER_AWAY is raised after three heartbeats, and not for a restart of the broker', async () => {
    const world = await smallWorld()
    world.network.stopBroker()
    await world.run(1_000)
    world.restoreBroker()
    await world.run(20_000)
    expect(world.eventsOf('broker_absence')).toEqual([])
    world.network.stopBroker()
    await world.run(5_000)
    expect(world.controller.views.alarms()).toMatchObject([{ code: 'BROKER_AWAY', nodeIds: [] }])
    world.restoreBroker()
    await world.run(1_000)
    expect(world.controller.views.alarms()).toEqual([])
    expect(world.eventsOf('broker_absence').map(({ data }) => [data['alarm'], data['is_away']])).toEqual([
      ['BROKER_AWAY', true],
      [null, false],
    ])
  })

  it('a controller that starts without a broker also keeps its nodes suspect', async () => {
    const world = await smallWorld()
    world.network.stopBroker()
    world.restartController()
    await world.run(60_000)
    expect([...world.controller.views.nodes()].map(({ status }) => status)).toEqual([
      'suspect',
      'suspect',
      'suspect',
    ])
  })
})
