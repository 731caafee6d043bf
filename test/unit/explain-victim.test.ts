import { expect, it } from 'vitest'
import { explainVictim } from '../../controller/query/explain/explain-victim.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import { FEATURES, type SwapMethod } from '../../protocol/units.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const IDLE_MS = 300_000

function placed(request = {}, hostSwapMib = 60): { readonly b: ClusterBuilder; readonly task: LiveTask } {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 100 })
  b.addNode({ id: 'n', gpus: [110], hostSwapMib, features: FEATURES })
  const task = b.submit({ vramMib: 50, ...request })
  b.cycle()
  return { b, task }
}

const standing = ({ b, task }: { b: ClusterBuilder; task: LiveTask }) =>
  explainVictim(b.cluster, placementOf(task), b.now)

it('A task that has not started is not a victim', () => {
  expect(standing(placed())).toMatchObject({ standing: 'NOT_STARTED', eligibleAt: null })
})

it('An idle task reports when it becomes eligible, and then that it is eligible', () => {
  const world = placed()
  world.b.started(world.task)
  const since = world.b.now
  expect(standing(world)).toEqual({
    standing: 'NOT_IDLE_LONG_ENOUGH',
    eligibleAt: since + IDLE_MS,
    sentence:
      'It may be swapped out in 300 s, once it has been idle for 300 s. The driver would ' +
      'move its data out of VRAM.',
  })
  world.b.advance(IDLE_MS)
  expect(standing(world)).toMatchObject({ standing: 'ELIGIBLE', eligibleAt: null })
})

it('A task that is kept warm may leave when the others of its class are not enough', () => {
  const world = placed({ keepWarm: true })
  world.b.started(world.task)
  world.b.advance(300_000)
  expect(standing(world)).toMatchObject({
    standing: 'ELIGIBLE',
    sentence:
      'It is kept warm: it may be swapped out only if the other tasks below P0 do not free enough VRAM. ' +
      'The driver would move its data out of VRAM.',
  })
})

it('A task above its request goes before its equals, and the explanation has both figures', () => {
  const world = placed()
  world.b.started(world.task)
  Object.assign(placementOf(world.task), { demandMib: 54 })
  world.b.advance(IDLE_MS)
  expect(standing(world).sentence).toBe(
    'It may be swapped out for any task that needs its VRAM. The driver would move its data out of VRAM. ' +
      'It is swapped out before other tasks of the same level, because it uses 54 MiB on each GPU, but ' +
      'requested only 50 MiB.',
  )
})

it('A task with an idle period of its own is eligible after that one', () => {
  const world = placed({ idleSwapOutSeconds: 20 })
  world.b.started(world.task)
  expect(standing(world)).toEqual({
    standing: 'NOT_IDLE_LONG_ENOUGH',
    eligibleAt: world.b.now + 20_000,
    sentence:
      'It may be swapped out in 20 s, once it has been idle for 20 s. The driver would ' +
      'move its data out of VRAM.',
  })
  world.b.advance(20_000)
  expect(standing(world)).toMatchObject({ standing: 'ELIGIBLE', eligibleAt: null })
})

it('A task that wants the GPU is not a victim unless max_residency_seconds applies', () => {
  const world = placed()
  world.b.started(world.task, true)
  expect(standing(world)).toMatchObject({
    standing: 'WANTS_GPU',
    eligibleAt: null,
    sentence: 'It is not swapped out: it wants the GPU.',
  })
  world.b.configure({ max_residency_seconds: 60 })
  expect(standing(world)).toMatchObject({ standing: 'WANTS_GPU', eligibleAt: world.b.now + 60_000 })
})

it('A noswap task is never a victim, and a P0 task only for P0', () => {
  const noswap = placed({ noswap: 1 })
  noswap.b.started(noswap.task)
  expect(standing(noswap)).toMatchObject({ standing: 'NOSWAP', eligibleAt: null })
  const p0 = placed({ priority: 0 })
  p0.b.started(p0.task)
  p0.b.advance(IDLE_MS)
  expect(standing(p0)).toMatchObject({
    standing: 'ELIGIBLE_FOR_P0_ONLY',
    sentence: expect.stringContaining('only for a P0 task'),
  })
})

it('A task is not a victim without host memory, while swapped out or moving, or after a failed swap', () => {
  const world = placed({ vramMib: 70 })
  const { b, task } = world
  b.started(task)
  b.advance(IDLE_MS)
  expect(standing(world)).toMatchObject({
    standing: 'NO_HOST_MEMORY',
    sentence: 'It is not swapped out: n has 60 MiB of host memory left, and the task needs 70 MiB.',
  })
  const mover = placed({}, 200)
  mover.b.started(mover.task)
  mover.b.advance(IDLE_MS)
  mover.b.submit({ vramMib: 60 })
  mover.b.cycle()
  expect(standing(mover)).toMatchObject({ standing: 'NOT_RESIDENT', sentence: 'It is being swapped out.' })
  mover.b.swapped(mover.task, true)
  expect(standing(mover)).toMatchObject({ standing: 'SWAP_FAILED_LATELY', eligibleAt: mover.b.now + 30_000 })
})

it('A task that its server has ended is not a victim before the event arrives, and requests no VRAM', () => {
  const world = placed({}, 200)
  const { b, task } = world
  b.started(task)
  b.advance(IDLE_MS)
  b.heartbeat(b.node('n'), {}, [task])
  expect(standing(world)).toMatchObject({
    standing: 'OVER',
    eligibleAt: null,
    sentence: expect.stringContaining('has ended'),
  })
  const waits = b.submit({ vramMib: 60 })
  b.cycle()
  expect([placementOf(task).residency, waits.placement]).toEqual(['resident', null])
  b.finished(task)
  b.cycle()
  expect(placementOf(waits).residency).toBe('none')
})

it('A return is no longer requested once its task has ended', () => {
  const { b, task } = placed({}, 200)
  b.started(task)
  b.byHand(task, 'swap-out')
  b.cycle()
  b.swapped(task)
  b.submit({ vramMib: 90, priority: 0 })
  b.settle()
  b.wants(task, true)
  b.cycle()
  expect(placementOf(task).entry?.kind).toBe('swap_in')
  b.heartbeat(b.node('n'), {}, [task])
  b.cycle()
  expect([placementOf(task).entry, b.node('n').queue]).toEqual([null, []])
})

it('A stopping task is not a victim: the task that needs its VRAM starts after its end', () => {
  const world = placed({ command: ['train'] }, 200)
  const { b, task } = world
  b.started(task)
  b.advance(IDLE_MS)
  b.cancel(task)
  expect(standing(world)).toMatchObject({ standing: 'STOPPING', eligibleAt: null })
  const waits = b.submit({ vramMib: 80 })
  b.cycle()
  b.advance(IDLE_MS)
  b.cycle()
  expect([placementOf(task).residency, waits.placement]).toEqual(['resident', null])
  b.stopped(task)
  b.cycle()
  expect(placementOf(waits).residency).toBe('none')
})

it('A task that is swapped out says by what, and what stays in VRAM', () => {
  const out = (residualMib: number, request = {}, by?: SwapMethod) => {
    const world = placed(request, 1000)
    world.b.started(world.task)
    world.b.advance(IDLE_MS)
    world.b.submit({ vramMib: 70 })
    world.b.cycle()
    world.b.swapped(world.task, false, false, residualMib, by)
    return standing(world)
  }
  expect(out(0, { swapMethod: 'hooks' })).toMatchObject({
    sentence: 'It has already been swapped out by the driver.',
  })
  expect(out(0, { swapMethod: 'hooks' }, 'hooks')).toMatchObject({
    sentence: 'It has already been swapped out by its hooks.',
  })
  expect(out(5, { swapMethod: 'hooks' })).toMatchObject({
    standing: 'NOT_RESIDENT',
    sentence: 'It has already been swapped out by its hooks; 5 MiB stays in VRAM on each GPU.',
  })
  expect(out(5, { swapMethod: 'engine' })).toMatchObject({
    sentence: 'It has already been swapped out by its inference engine; 5 MiB stays in VRAM on each GPU.',
  })
})
