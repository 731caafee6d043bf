/**
 * Starts that a node refused (safety 3): a failure of the host is never a failure of the task. Nodes have one
 * GPU of 1,000 MiB.
 */
import { describe, expect, it } from 'vitest'
import type { StartRefused } from '../../protocol/message-fields.ts'
import { FaultWorld } from '../support/fault-world.ts'

const HOUR = 3_600_000
const NO_FOLDER = {
  detail: 'working directory /work: No such file or directory',
  refused: { cause: 'host', code: 'work_folder' } as StartRefused,
}
const NO_COMMAND = {
  detail: 'command trian.py: No such file or directory',
  refused: { cause: 'task', code: 'command_not_found' } as StartRefused,
}

async function worldOf(nodes: number): Promise<FaultWorld> {
  const world = new FaultWorld({ nodes, config: { heartbeat_seconds: 1, run_lease_seconds: 60 } })
  await world.startAll()
  return world
}

const nodeOf = (world: FaultWorld, name: string) => world.controller.views.node(world.idOf(name))
const taskOf = (world: FaultWorld, id: string) => {
  const task = world.controller.views.openTask(id)
  if (task === undefined) throw new Error(`${id} is gone`)
  return task
}
const waitOf = (world: FaultWorld, id: string) => world.controller.views.explain(taskOf(world, id))

describe('a node that cannot start any task', () => {
  it('fails no task: tasks run elsewhere, and the node is auto-cordoned', async () => {
    const world = await worldOf(3)
    world.refusing = (node) => (node === 'n1' ? NO_FOLDER : null)
    for (let i = 0; i < 20; i++) world.submit({ id: `t${i}`, ms: 3_000, onNodeLoss: 'requeue', vramMib: 400 })
    expect(await world.until(() => world.controller.views.counts().completed === 20, 120_000)).toBe(true)
    expect(world.controller.views.counts()).toMatchObject({ failed: 0, lost: 0 })
    expect(nodeOf(world, 'n1')).toMatchObject({
      isCordoned: false,
      autoCordon: { code: 'work_folder', reason: NO_FOLDER.detail },
    })
    expect(world.eventsOf('task_returned').every(({ nodeId }) => nodeId === world.idOf('n1'))).toBe(true)
    // More than three refusals may happen in one instant.
    expect(world.eventsOf('task_returned').length).toBeLessThan(10)
    expect(world.controller.views.alarms()).toMatchObject([
      { code: 'AUTO_CORDONED', nodeIds: [world.idOf('n1')] },
    ])
    expect(world.violations).toEqual([])
  })

  it('is uncordoned when a trial start works, at growing intervals', async () => {
    const world = await worldOf(2)
    let isBroken = true
    world.refusing = (node) => (isBroken && node === 'n1' ? NO_FOLDER : null)
    for (let i = 0; i < 40; i++) world.submit({ id: `t${i}`, ms: 20_000, vramMib: 400 })
    expect(await world.until(() => (nodeOf(world, 'n1')?.autoCordon?.failedTrials ?? 0) === 2, 300_000)).toBe(
      true,
    )
    await world.run(10)
    const waits = world.eventsOf('node_auto_cordon').map(({ at, data }) => Number(data['next_trial_at']) - at)
    expect(waits).toEqual([30_000, 60_000, 120_000])
    isBroken = false
    expect(await world.until(() => nodeOf(world, 'n1')?.autoCordon === null, 200_000)).toBe(true)
    await world.run(10)
    expect(world.eventsOf('node_auto_cordon').at(-1)?.data).toEqual({
      is_auto_cordoned: false,
      because: 'trial_start',
    })
    expect(world.controller.views.counts().failed).toBe(0)
  })

  it('is uncordoned by an operator', async () => {
    const world = await worldOf(3)
    world.refusing = (node) => (node === 'n1' ? NO_FOLDER : null)
    for (let i = 0; i < 12; i++) world.submit({ id: `t${i}`, ms: HOUR, vramMib: 200 })
    expect(await world.until(() => nodeOf(world, 'n1')?.autoCordon !== null, 60_000)).toBe(true)
    world.refusing = null
    world.controller.commands.setCordon(world.idOf('n1'), false, 'alice', () => {})
    expect(nodeOf(world, 'n1')?.autoCordon).toBeNull()
    expect(await world.until(() => world.controller.views.counts().running === 12, 60_000)).toBe(true)
  })

  it('stays open with an alarm if half of the nodes are already auto-cordoned', async () => {
    const world = await worldOf(3)
    world.refusing = (node) => (node === 'n3' ? null : NO_FOLDER)
    for (let i = 0; i < 30; i++) world.submit({ id: `t${i}`, ms: 30_000, vramMib: 400 })
    expect(await world.until(() => world.controller.views.alarms().length === 2, 120_000)).toBe(true)
    expect(world.controller.views.alarms().map(({ code }) => code)).toEqual([
      'AUTO_CORDONED',
      'AUTO_CORDON_LIMIT',
    ])
    expect([...world.controller.views.nodes()].filter(({ autoCordon }) => autoCordon !== null)).toHaveLength(
      1,
    )
    expect(world.controller.views.counts().failed).toBe(0)
  })

  it('is still auto-cordoned after a restart of the controller', async () => {
    const world = await worldOf(3)
    world.refusing = (node) => (node === 'n1' ? NO_FOLDER : null)
    for (let i = 0; i < 12; i++) world.submit({ id: `t${i}`, ms: HOUR, vramMib: 200 })
    expect(await world.until(() => (nodeOf(world, 'n1')?.autoCordon ?? null) !== null, 60_000)).toBe(true)
    await world.run(100)
    world.restartController()
    await world.run(5_000)
    expect(nodeOf(world, 'n1')?.autoCordon).toMatchObject({ code: 'work_folder' })
  })
})

describe('a task that nodes cannot start', () => {
  it('waits with START_REFUSED once every suitable node refused it, with the reasons', async () => {
    const world = await worldOf(2)
    world.refusing = (_, taskId) => (taskId === 'bad' ? NO_COMMAND : null)
    world.submit({ id: 'bad', ms: 1_000 })
    expect(await world.until(() => taskOf(world, 'bad').trouble.pause !== null, 30_000)).toBe(true)
    expect(waitOf(world, 'bad')).toMatchObject({ primary: { reason: 'START_REFUSED' }, queuePosition: null })
    for (const node of ['n1', 'n2'])
      expect(waitOf(world, 'bad')?.sentence).toContain(`${node}: command trian.py: No such file`)
    // It is not a head, has no reservation and causes no cordon.
    world.submit({ id: 'good', ms: 1_000, vramMib: 1_000 })
    expect(await world.until(() => world.isFinal('good'), 10_000)).toBe(true)
    expect([...world.controller.views.nodes()].every(({ autoCordon }) => autoCordon === null)).toBe(true)
    expect(world.eventsOf('task_placed', 'bad')).toHaveLength(2)
    expect(world.controller.views.alarms()).toMatchObject([{ code: 'START_REFUSED' }])
    await world.run(9 * 60_000)
    expect(world.eventsOf('task_placed', 'bad')).toHaveLength(2)
    expect(await world.until(() => world.eventsOf('task_placed', 'bad').length === 4, 120_000)).toBe(true)
    await world.run(1_000)
    // Then twice as long.
    const { pause } = taskOf(world, 'bad').trouble
    expect((pause?.until ?? 0) - (pause?.since ?? 0)).toBe(20 * 60_000)
    expect(taskOf(world, 'bad').state).toBe('pending')
  })

  it('is tried at most three times if there are more nodes', async () => {
    const world = await worldOf(5)
    world.refusing = (_, taskId) => (taskId === 'bad' ? NO_COMMAND : null)
    world.submit({ id: 'bad', ms: 1_000 })
    expect(await world.until(() => taskOf(world, 'bad').trouble.pause !== null, 30_000)).toBe(true)
    expect(world.eventsOf('task_placed', 'bad')).toHaveLength(3)
  })

  it.each([
    [
      'it is released',
      (world: FaultWorld) => world.controller.commands.releaseTask('bad', 'alice', () => {}),
    ],
    [
      'it is changed',
      (world: FaultWorld) => world.controller.commands.updateTask('bad', { vramMib: 500 }, 'alice', () => {}),
    ],
    [
      'a node is uncordoned',
      (world: FaultWorld) => {
        world.controller.commands.setCordon(world.idOf('n1'), true, 'alice', () => {})
        world.controller.commands.setCordon(world.idOf('n1'), false, 'alice', () => {})
      },
    ],
  ])('is tried again when %s', async (_, act) => {
    const world = await worldOf(2)
    world.refusing = () => NO_COMMAND
    world.submit({ id: 'bad', ms: HOUR })
    expect(await world.until(() => taskOf(world, 'bad').trouble.pause !== null, 30_000)).toBe(true)
    world.refusing = null
    act(world)
    expect(await world.until(() => world.stateOf('bad') === 'running', 10_000)).toBe(true)
    expect(taskOf(world, 'bad').trouble.refusals).toEqual([])
  })

  it('still waits after a restart of the controller', async () => {
    const world = await worldOf(2)
    world.refusing = () => NO_COMMAND
    world.submit({ id: 'bad', ms: HOUR })
    expect(await world.until(() => taskOf(world, 'bad').trouble.pause !== null, 30_000)).toBe(true)
    await world.run(1_000)
    world.restartController()
    await world.run(5_000)
    expect(waitOf(world, 'bad')).toMatchObject({ primary: { reason: 'START_REFUSED' } })
    world.refusing = null
    expect(await world.until(() => world.stateOf('bad') === 'running', 11 * 60_000)).toBe(true)
  })

  it('fails if its server gives no reason', async () => {
    const world = await worldOf(1)
    world.refusing = () => ({ detail: 'command trian.py: No such file or directory' })
    world.submit({ id: 'bad', ms: HOUR })
    expect(await world.until(() => world.isFinal('bad'), 10_000)).toBe(true)
    expect(world.stateOf('bad')).toBe('failed')
  })
})
