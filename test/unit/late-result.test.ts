/**
 * Results of attempts that were given up (R8), in virtual time with production code on both sides. Leases
 * last 10 s, with a margin of 5 s.
 */
import { describe, expect, it } from 'vitest'
import { FaultWorld } from '../support/fault-world.ts'

const ENDS_AFTER_MS = 8_000
const GIVEN_UP_AFTER_MS = 18_000
/** Delay before the first requeue. */
const REQUEUE_DELAY_MS = 10_000

/** A requeued task runs on n1 and ends there while n1 is cut off; the controller has given the attempt up. */
async function givenUp(nodes = 1): Promise<{ readonly world: FaultWorld; readonly first: string }> {
  const world = new FaultWorld({ nodes })
  await world.startAll()
  world.submit({ id: 't', ms: ENDS_AFTER_MS, onNodeLoss: 'requeue' })
  expect(await world.until(() => world.stateOf('t') === 'running', 5_000)).toBe(true)
  await world.run(100)
  const first = world.runningOn('t')[0] as string
  world.network.cutOff.add(first)
  return { world, first }
}

describe('the result of an attempt that was given up', () => {
  it('completes the task when no later attempt has started', async () => {
    const { world } = await givenUp()
    await world.run(GIVEN_UP_AFTER_MS)
    expect(world.stateOf('t')).toBe('pending')
    world.network.cutOff.clear()
    expect(await world.until(() => world.isFinal('t'), 10_000)).toBe(true)
    expect(world.eventsOf('task_finished', 't')[0]?.data).toMatchObject({
      state: 'completed',
      attempt: 1,
      exit_code: 0,
    })
    expect(world.eventsOf('task_placed', 't')).toHaveLength(1)
    expect(world.violations).toEqual([])
  })

  it('completes the task also after a restart of the controller', async () => {
    const { world } = await givenUp()
    await world.run(GIVEN_UP_AFTER_MS)
    expect(world.stateOf('t')).toBe('pending')
    world.restartController()
    await world.run(1_000)
    world.network.cutOff.clear()
    expect(await world.until(() => world.isFinal('t'), 20_000)).toBe(true)
    expect(world.eventsOf('task_finished', 't')[0]?.data).toMatchObject({
      state: 'completed',
      attempt: 1,
      exit_code: 0,
    })
  })

  it('causes one event and no other change when a later attempt has started', async () => {
    const { world, first } = await givenUp(2)
    await world.run(GIVEN_UP_AFTER_MS + REQUEUE_DELAY_MS)
    expect(world.eventsOf('task_started', 't')).toHaveLength(2)
    world.network.cutOff.clear()
    await world.until(() => world.eventsOf('task_late_result', 't').length > 0, 6_000)
    await world.run(500)
    const told = world.eventsOf('task_late_result', 't')
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({
      nodeId: world.idOf(first),
      data: { attempt: 1, outcome: 'completed', exit_code: 0 },
    })
    expect(await world.until(() => world.isFinal('t'), 10_000)).toBe(true)
    expect(world.eventsOf('task_finished', 't')[0]?.data).toMatchObject({ state: 'completed', attempt: 2 })
    expect(world.violations).toEqual([])
  })

  it('is awaited once its node has announced it: no other node starts the task', async () => {
    const { world, first } = await givenUp(2)
    await world.until(() => world.eventsOf('task_paused', 't').length > 0, GIVEN_UP_AFTER_MS)
    await world.run(REQUEUE_DELAY_MS - 1_000)
    // One snapshot of the node arrives, and not yet the result.
    world.network.onDelivery = (_subject, message, from) => {
      if (from === first && ['heartbeat', 'hello'].includes(message.body.op)) world.network.cutOff.add(first)
    }
    world.network.cutOff.delete(first)
    expect(await world.until(() => world.network.cutOff.has(first), 2_500)).toBe(true)
    world.network.onDelivery = null
    await world.run(1_800)
    expect(world.stateOf('t')).toBe('pending')
    const { views } = world.controller
    const task = views.openTask('t')
    expect(task?.trouble.pause?.reason).toBe('RESULT_AWAITED')
    expect(task && views.explain(task)?.sentence).toContain(
      'Waiting for the result of an earlier attempt, which its node has announced. The controller tries ' +
        'again in',
    )
    world.network.cutOff.clear()
    expect(await world.until(() => world.isFinal('t'), 10_000)).toBe(true)
    expect(world.eventsOf('task_placed', 't')).toHaveLength(1)
    expect(world.eventsOf('task_finished', 't')[0]?.data).toMatchObject({ state: 'completed', attempt: 1 })
    expect(world.violations).toEqual([])
  })

  it('is awaited for a few heartbeats only: then another node starts the task', async () => {
    const { world, first } = await givenUp(2)
    await world.until(() => world.eventsOf('task_paused', 't').length > 0, GIVEN_UP_AFTER_MS)
    await world.run(REQUEUE_DELAY_MS - 3_000)
    world.network.onDelivery = (_subject, message, from) => {
      if (from === first && ['heartbeat', 'hello'].includes(message.body.op)) world.network.cutOff.add(first)
    }
    world.network.cutOff.delete(first)
    expect(await world.until(() => world.network.cutOff.has(first), 2_500)).toBe(true)
    expect(await world.until(() => world.eventsOf('task_placed', 't').length === 2, 12_000)).toBe(true)
  })

  it('ends a later attempt that was ordered and has not started', async () => {
    const { world, first } = await givenUp(2)
    const second = first === 'n1' ? 'n2' : 'n1'
    // The second attempt is ordered, and its node is cut off.
    world.network.onDelivery = (_subject, message) => {
      if (message.body.op === 'start') world.network.cutOff.add(second)
    }
    expect(
      await world.until(
        () => world.eventsOf('task_placed', 't').length === 2,
        GIVEN_UP_AFTER_MS + REQUEUE_DELAY_MS,
      ),
    ).toBe(true)
    await world.run(100)
    expect(world.stateOf('t')).toBe('assigned')
    world.network.cutOff.delete(first)
    await world.until(() => world.eventsOf('task_updated', 't').length > 0, 6_000)
    expect(world.stateOf('t')).toBe('assigned')
    world.network.onDelivery = () => {}
    world.network.cutOff.clear()
    expect(await world.until(() => world.isFinal('t'), 10_000)).toBe(true)
    expect(world.eventsOf('task_finished', 't')[0]?.data).toMatchObject({ state: 'completed', exit_code: 0 })
    expect(world.livesOn('t')).toEqual([])
    expect(world.violations).toEqual([])
  })
})
