import { describe, expect, it } from 'vitest'
import type { LiveTask } from '../../controller/state/facts.ts'
import { recordOfNode, recordOfTask } from '../../controller/state/records.ts'
import { restore } from '../../controller/engine/recovery.ts'
import { EMPTY_STATE } from '../../controller/adapters/memory-store.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const SECOND = 1000
const IDLE_MS = 300 * SECOND

/** One GPU of 100 MiB with a commit limit of 200 MiB and no reserve. */
function oneGpu(
  over: ConstructorParameters<typeof ClusterBuilder>[0] = {},
  hostSwapMib = 1000,
): ClusterBuilder {
  const b = new ClusterBuilder({ safety_reserve_mib: 0, default_vram_overcommit_percent: 100, ...over })
  b.addNode({ id: 'n', gpus: [100], hostSwapMib })
  return b
}

/** Restarts the controller from its store after a crash. */
function restarted(b: ClusterBuilder): ClusterBuilder {
  const next = new ClusterBuilder(b.cluster.config.fields)
  next.now = b.now
  const openTasks = b.tasks.map(recordOfTask)
  const nodes = [...b.cluster.nodes.values()].map(recordOfNode)
  restore(next.cluster, { ...EMPTY_STATE, openTasks, nodes }, b.now)
  return next
}

function only(b: ClusterBuilder): LiveTask {
  return b.tasks[0] as LiveTask
}

describe('a task on hold', () => {
  it('is not placed before its release, and later tasks overtake it', () => {
    const b = oneGpu({ placement_strategy: 'fifo' })
    const held = b.submit({ vramMib: 60 })
    expect(b.byHand(held, 'hold')).toBeNull()
    const later = b.submit({ vramMib: 60 })
    b.cycle()
    expect([held.state, later.state]).toEqual(['pending', 'assigned'])
    expect(b.explain(held)).toMatchObject({ primary: { reason: 'HELD' }, queuePosition: null })
    expect(b.byHand(held, 'release')).toBeNull()
    b.finished(later)
    b.cycle()
    expect(held.state).toBe('assigned')
  })

  it('releases the VRAM that victims were freeing for it', () => {
    const b = oneGpu()
    const idle = b.submit({ vramMib: 60 })
    b.settle()
    b.advance(IDLE_MS)
    const asks = b.submit({ vramMib: 60 })
    b.cycle()
    expect([placementOf(idle).residency, asks.placementEntry?.hasReserved]).toEqual(['swapping_out', true])
    b.byHand(asks, 'hold')
    b.swapped(idle)
    b.cycle()
    expect([asks.state, asks.placementEntry, b.gpus[0]?.claimants, b.gpus[0]?.swappableMib]).toEqual([
      'pending',
      null,
      [],
      60,
    ])
  })

  it('begins its wait with its release, without aging or a reservation before', () => {
    const b = oneGpu({ queue_aging_seconds: 60 })
    const task = b.submit({ vramMib: 5000, priority: 4 })
    b.byHand(task, 'hold')
    b.advance(1000 * SECOND)
    b.byHand(task, 'release')
    b.cycle()
    expect([task.pendingSince, task.queueClass]).toEqual([b.now, 4])
  })

  it('adds no demand, stays on hold over a change, and is put on hold only once', () => {
    const b = oneGpu()
    const task = b.submit({ vramMib: 60 })
    b.byHand(task, 'hold')
    expect([b.cluster.waiting.gpus, b.byHand(task, 'hold')]).toEqual([0, null])
    b.update(task, { priority: 0 })
    b.cycle()
    expect([task.state, task.queue, b.events.filter(({ kind }) => kind === 'task_held').length]).toEqual([
      'pending',
      null,
      1,
    ])
    expect(only(restarted(b))).toMatchObject({ isHeld: true, queue: null })
  })

  it('cannot be a placed task', () => {
    const b = oneGpu()
    const task = b.submit({ vramMib: 60 })
    b.settle()
    expect(b.byHand(task, 'hold')).toBe(
      'task t1 is running; only a pending task can be put on hold: swap it out or requeue it',
    )
    expect(b.byHand(task, 'release')).toBe('task t1 is running; it is not on hold')
  })
})

describe('a swap-out by an operator', () => {
  it('moves an idle task before its idle period is over, until it wants the GPU', () => {
    const b = oneGpu()
    const task = b.submit({ vramMib: 60 })
    b.settle()
    expect(b.byHand(task, 'swap-out')).toBeNull()
    b.cycle()
    expect(b.effects.at(-1)).toMatchObject({
      kind: 'swap_out',
      taskId: 't1',
      generation: 1,
      forceActive: false,
    })
    b.swapped(task)
    b.advance(10_000 * SECOND)
    expect(placementOf(task)).toMatchObject({ residency: 'swapped_out', entry: null })
    b.wants(task, true)
    b.settle()
    expect(placementOf(task)).toMatchObject({ residency: 'resident', wantsGpu: true })
  })

  it('leaves the rounds unchanged, because no rule chose the task', () => {
    const b = oneGpu()
    const task = b.submit({ vramMib: 60 })
    b.settle()
    b.byHand(task, 'swap-out')
    b.cycle()
    expect(b.gpus[0]?.rounds.non_p0.marks.size).toBe(0)
  })

  it('is refused with the reason and without effect', () => {
    const b = oneGpu({}, 50)
    const task = b.submit({ vramMib: 60 })
    expect(b.byHand(task, 'swap-out')).toBe('task t1 is pending: it is on no GPU')
    b.cycle()
    expect(b.byHand(task, 'swap-out')).toBe('task t1 has not started yet')
    b.settle()
    expect(b.byHand(task, 'swap-out')).toBe('task t1 needs 60 MiB of host memory to swap to; n has 50 MiB')
    b.wants(task, true)
    expect(b.byHand(task, 'swap-out')).toBe('task t1 wants the GPU: an active task is not swapped out')
    b.update(task, { noswap: 1 })
    expect(b.byHand(task, 'swap-out')).toBe('task t1 is noswap: it stays in VRAM')
    b.silence(b.node('n'))
    expect(b.byHand(task, 'swap-out')).toBe('task t1 cannot be moved: its server n does not answer')
    expect(placementOf(task).residency).toBe('resident')
    expect(b.byHand({ spec: { id: 'absent' } } as LiveTask, 'swap-out')).toBe('not_found')
  })

  it('waits after a failed swap-out', () => {
    const b = oneGpu()
    const task = b.submit({ vramMib: 60 })
    b.settle()
    b.byHand(task, 'swap-out')
    b.cycle()
    expect(b.byHand(task, 'swap-out')).toBe(
      'task t1 is swapping out; only a resident task can be swapped out',
    )
    b.swapped(task, true)
    expect(b.byHand(task, 'swap-out')).toBe(
      'task t1 failed to swap a moment ago; it may be tried again in 30 s',
    )
    b.advance(30 * SECOND)
    expect(b.byHand(task, 'swap-out')).toBeNull()
  })
})

describe('a swap-in by an operator', () => {
  /** An operator swapped out `away`; `busy` has taken its place. */
  function oneIsAway(): { readonly b: ClusterBuilder; readonly away: LiveTask; readonly busy: LiveTask } {
    const b = oneGpu()
    const away = b.submit({ vramMib: 60 })
    b.settle()
    b.byHand(away, 'swap-out')
    b.cycle()
    b.swapped(away)
    const busy = b.submit({ vramMib: 60 })
    b.settle()
    b.wants(busy, true)
    return { b, away, busy }
  }

  it("waits in the node's queue until VRAM is free, whatever the task reports", () => {
    const { b, away, busy } = oneIsAway()
    expect(b.byHand(away, 'swap-in')).toBeNull()
    b.cycle()
    expect(b.explain(away)?.primary.reason).toBe('NO_ELIGIBLE_VICTIM')
    b.wants(away, true)
    b.wants(away, false)
    expect(placementOf(away).entry?.kind).toBe('swap_in')
    b.finished(busy)
    b.settle()
    expect(placementOf(away)).toMatchObject({ residency: 'resident', isSwapInRequested: false, entry: null })
  })

  it('survives a restart of the controller', () => {
    const { b, away } = oneIsAway()
    b.byHand(away, 'swap-in')
    b.cycle()
    expect(placementOf(only(restarted(b)))).toMatchObject({
      isSwapInRequested: true,
      entry: { kind: 'swap_in' },
    })
  })

  it('is repeated after a refusal by the node or a failed copy', () => {
    const { b, away, busy } = oneIsAway()
    b.finished(busy)
    b.byHand(away, 'swap-in')
    b.cycle()
    expect(placementOf(away).residency).toBe('swapping_in')
    b.swapped(away, true)
    expect(placementOf(away)).toMatchObject({ residency: 'swapped_out', entry: { kind: 'swap_in' } })
  })

  it('is cancelled by a swap-out, unless the task wants the GPU by then', () => {
    const { b, away } = oneIsAway()
    b.byHand(away, 'swap-in')
    expect(b.byHand(away, 'swap-out')).toBeNull()
    expect(placementOf(away)).toMatchObject({ isSwapInRequested: false, entry: null })
    b.byHand(away, 'swap-in')
    b.wants(away, true)
    expect(b.byHand(away, 'swap-out')).toBe('task t1 is swapped out; only a resident task can be swapped out')
  })

  it('is refused for a task that is not swapped out', () => {
    const { b, busy } = oneIsAway()
    expect(b.byHand(busy, 'swap-in')).toBe('task t2 is resident; only a swapped-out task can be swapped in')
  })
})

describe('max_runtime_seconds', () => {
  it('ends the attempt as failed, counted from its start, whatever its residency', () => {
    const b = oneGpu()
    const task = b.submit({ vramMib: 60, maxRuntimeSeconds: 100 })
    b.advance(50 * SECOND)
    b.settle()
    b.byHand(task, 'swap-out')
    b.cycle()
    b.swapped(task)
    b.advance(99 * SECOND)
    expect(placementOf(task).stopping).toBeNull()
    b.advance(SECOND)
    expect(b.effects.at(-1)).toMatchObject({
      kind: 'stop',
      taskId: 't1',
      reason: 'max_runtime_seconds (100) is over',
    })
    b.stopped(task)
    expect(task).toMatchObject({ state: 'failed', endReason: 'max_runtime_seconds (100) is over' })
    expect(b.cluster.runtimeLimits.size).toBe(0)
  })

  it('survives a restart of the controller, also if it expires meanwhile', () => {
    const b = oneGpu()
    b.submit({ vramMib: 60, maxRuntimeSeconds: 100 })
    b.settle()
    b.now += 40 * SECOND
    const second = restarted(b)
    second.advance(59 * SECOND)
    expect(placementOf(only(second)).stopping).toBeNull()
    second.advance(SECOND)
    expect(placementOf(only(second)).stopping).toMatchObject({ then: 'failed' })
    b.now += 1000 * SECOND
    const third = restarted(b)
    third.advance(0)
    expect(placementOf(only(third)).stopping).toMatchObject({ then: 'failed' })
  })

  it('does not replace the result of a task that ends at that moment; each attempt counts alone', () => {
    const b = oneGpu()
    const task = b.submit({ vramMib: 60, maxRuntimeSeconds: 100 })
    b.settle()
    b.advance(60 * SECOND)
    b.requeue(task)
    b.stopped(task)
    b.settle()
    b.advance(60 * SECOND)
    expect([task.attempt, placementOf(task).stopping]).toEqual([2, null])
    b.advance(40 * SECOND)
    b.finished(task)
    expect(task.state).toBe('completed')
  })

  it('does not undo a cancellation, and a later requeue is refused', () => {
    const b = oneGpu()
    const [one, two] = [
      b.submit({ vramMib: 30, maxRuntimeSeconds: 100 }),
      b.submit({ vramMib: 30, maxRuntimeSeconds: 100 }),
    ]
    b.settle()
    b.cancel(one)
    b.advance(100 * SECOND)
    b.stopped(one)
    expect(one.state).toBe('cancelled')
    expect(b.requeue(two)).toBe('task t2 is being stopped: max_runtime_seconds (100) is over')
  })
})

describe('a drained node', () => {
  const twoNodes = () => {
    const b = new ClusterBuilder({ safety_reserve_mib: 0 })
    for (const id of ['a', 'b']) b.addNode({ id, gpus: [100] })
    return b
  }

  it('accepts no task, and its requeue tasks move when their time is over', () => {
    const b = twoNodes()
    const [moves, stays] = [b.submit({ vramMib: 40, onNodeLoss: 'requeue' }), b.submit({ vramMib: 40 })]
    b.settle()
    expect([placementOf(moves).node.id, placementOf(stays).node.id]).toEqual(['a', 'a'])
    b.drain(b.node('a'), 60 * SECOND)
    const next = b.submit({ vramMib: 20 })
    b.settle()
    expect(placementOf(next).node.id).toBe('b')
    b.advance(59 * SECOND)
    expect(placementOf(moves).stopping).toBeNull()
    b.advance(SECOND)
    expect([placementOf(moves).stopping?.then, placementOf(stays).stopping]).toEqual(['pending', null])
    b.stopped(moves)
    b.settle()
    expect([placementOf(moves).node.id, placementOf(stays).node.id]).toEqual(['b', 'a'])
  })

  it('moves no task unless that is requested', () => {
    const b = twoNodes()
    const task = b.submit({ vramMib: 40, onNodeLoss: 'requeue' })
    b.settle()
    b.drain(b.node('a'), null)
    b.advance(100_000 * SECOND)
    expect(placementOf(task).stopping).toBeNull()
  })

  it('is still drained after a restart of the controller', () => {
    const b = twoNodes()
    b.submit({ vramMib: 40, onNodeLoss: 'requeue' })
    b.settle()
    b.drain(b.node('a'), 60 * SECOND)
    const next = restarted(b)
    expect(next.node('a')).toMatchObject({
      isCordoned: true,
      drain: { movesAt: b.now + 60 * SECOND, by: 'a test' },
    })
    next.advance(60 * SECOND)
    expect(placementOf(only(next)).stopping?.then).toBe('pending')
  })

  it('accepts tasks again after uncordon, and no further task is moved', () => {
    const b = twoNodes()
    const task = b.submit({ vramMib: 40, onNodeLoss: 'requeue' })
    b.settle()
    b.drain(b.node('a'), 60 * SECOND)
    b.cordon(b.node('a'), false)
    b.advance(60 * SECOND)
    expect([b.node('a').drain, b.node('a').isCordoned, placementOf(task).stopping]).toEqual([
      null,
      false,
      null,
    ])
  })
})
