/**
 * Eager returns (semantics 5): a task that has been swapped out for ten seconds returns to free VRAM that no
 * task waits for.
 */
import { describe, expect, it } from 'vitest'
import type { ConfigFields } from '../../controller/model/config.ts'
import { SWAP_BACK_OFF_MS } from '../../controller/engine/inputs/nodes/node-events.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'
import { restarted } from '../support/restarted-cluster.ts'

const SECOND = 1000
const IDLE_S = 60
const GPU_MIB = 20_000

function cluster(config: Partial<ConfigFields> = {}, gpus: readonly number[] = [GPU_MIB]): ClusterBuilder {
  const b = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 300,
    idle_swap_out_seconds: IDLE_S,
    ...config,
  })
  b.addNode({ id: 'n', gpus })
  return b
}

/**
 * Creates tasks of `mib` each, swapped out in this order for one task that took the whole GPU and has just
 * ended.
 */
function away(b: ClusterBuilder, ...mibs: readonly number[]): readonly LiveTask[] {
  const tasks = mibs.map((vramMib) => b.submit({ vramMib }))
  b.settle()
  b.advance(IDLE_S * SECOND)
  const whole = b.submit({ vramMib: GPU_MIB })
  b.cycle()
  for (const task of tasks) {
    b.swapped(task)
    b.advance(1)
  }
  b.settle()
  b.finished(whole)
  b.cycle()
  return tasks
}

function residencies(...tasks: readonly LiveTask[]): readonly string[] {
  return tasks.map((task) => placementOf(task).residency)
}

describe('a swapped-out task without a swap-in request', () => {
  it('returns after ten seconds to a GPU without resident tasks, however full the GPU becomes', () => {
    const b = cluster()
    const [task] = away(b, 19_500) as [LiveTask]
    b.advance(10 * SECOND - 2)
    expect(residencies(task)).toEqual(['swapped_out'])
    b.advance(1)
    expect(residencies(task)).toEqual(['swapping_in'])
    expect(b.effects.at(-1)).toMatchObject({ kind: 'swap_in', taskId: task.spec.id, forceActive: false })
    expect(b.events.filter(({ kind }) => kind === 'swap_in_decided').map(({ data }) => data)).toEqual([
      { waited_ms: 0, mib: 19_500, eager: true },
    ])
  })

  it.each([
    [0, 0],
    [3, 3],
    [60, 60],
  ])('returns after eager_swap_in_seconds (%d)', (seconds, after) => {
    const b = cluster({ eager_swap_in_seconds: seconds })
    const [task] = away(b, 19_500) as [LiveTask]
    if (after > 0) {
      b.advance(after * SECOND - 2)
      expect(residencies(task)).toEqual(['swapped_out'])
      b.advance(1)
    }
    expect(residencies(task)).toEqual(['swapping_in'])
  })

  it('stays swapped out while eager_swap_in_seconds is null, and returns once it has a value', () => {
    const b = cluster({ eager_swap_in_seconds: null })
    const [task] = away(b, 1000) as [LiveTask]
    b.advance(86_400 * SECOND)
    expect(residencies(task)).toEqual(['swapped_out'])
    b.configure({ eager_swap_in_seconds: 10 })
    b.cycle()
    expect(residencies(task)).toEqual(['swapping_in'])
  })

  it.each([
    [8_000, 'swapping_in'],
    [8_001, 'swapped_out'],
  ])(
    'A swapped-out task returns next to a resident task if a tenth of the GPU stays free: %d MiB',
    (mib, expected) => {
      const b = cluster()
      const [task] = away(b, mib) as [LiveTask]
      b.submit({ vramMib: 10_000 })
      b.settle()
      b.advance(10 * SECOND)
      expect(residencies(task)).toEqual([expected])
    },
  )

  it.each([
    [976, 'swapping_in'],
    [977, 'swapped_out'],
  ])('An eager return leaves 1 GiB free next to a resident task of a small GPU: %d MiB', (mib, expected) => {
    const b = cluster({}, [4000])
    const task = b.submit({ vramMib: mib })
    b.settle()
    b.advance(IDLE_S * SECOND)
    const whole = b.submit({ vramMib: 4000 })
    b.settle()
    b.finished(whole)
    b.submit({ vramMib: 2000 })
    b.settle()
    b.advance(10 * SECOND)
    expect(residencies(task)).toEqual([expected])
  })

  it('returns alone, and the task that has been swapped out longest returns first', () => {
    const b = cluster({ eager_swap_in_seconds: null })
    const [first, second] = away(b, 5000, 4000) as [LiveTask, LiveTask]
    b.advance(60 * SECOND)
    // From now on both have been swapped out long enough.
    b.configure({ eager_swap_in_seconds: 10 })
    b.cycle()
    expect(residencies(first, second)).toEqual(['swapping_in', 'swapped_out'])
    b.swapped(first)
    b.cycle()
    expect(residencies(first, second)).toEqual(['resident', 'swapping_in'])
  })

  it("stays swapped out while another task waits in the node's queue, and returns afterwards", () => {
    const b = cluster()
    const [task, waits] = away(b, 1000, 12_000) as [LiveTask, LiveTask]
    const busy = b.submit({ vramMib: 10_000 })
    b.settle()
    b.wants(busy, true)
    b.wants(waits, true)
    b.cycle()
    b.advance(20 * SECOND)
    expect(residencies(task, waits)).toEqual(['swapped_out', 'swapped_out'])
    b.wants(waits, false)
    b.cycle()
    expect(residencies(task, waits)).toEqual(['swapping_in', 'swapped_out'])
  })

  it('stays swapped out while a pending task waits for VRAM of its GPU, and returns afterwards', () => {
    const b = cluster()
    const [task] = away(b, 1000) as [LiveTask]
    const busy = b.submit({ vramMib: 10_000 })
    b.settle()
    b.wants(busy, true)
    const waits = b.submit({ vramMib: 12_000 })
    b.cycle()
    b.advance(20 * SECOND)
    expect(residencies(task)).toEqual(['swapped_out'])
    b.cancel(waits)
    b.cycle()
    expect(residencies(task)).toEqual(['swapping_in'])
  })

  it('returns even if a pending task waits for more than VRAM there', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    const [task] = away(b, 8000) as [LiveTask]
    b.submit({ vramMib: 10_000 })
    b.settle()
    const waits = b.submit({ vramMib: 15_000 })
    b.cycle()
    b.advance(10 * SECOND)
    expect(b.explain(waits)?.primary.reason).toBe('WAITING_VRAM')
    expect(residencies(task)).toEqual(['swapping_in'])
  })
})

describe('an eager return', () => {
  it('keeps the idle clock: its task may be swapped out again at once', () => {
    const b = cluster()
    const [task] = away(b, 12_000) as [LiveTask]
    b.advance(11 * SECOND)
    b.swapped(task)
    b.cycle()
    expect(placementOf(task)).toMatchObject({ residency: 'resident', isEager: true, residentSince: b.now })
    b.submit({ vramMib: 10_000 })
    b.cycle()
    expect(residencies(task)).toEqual(['swapping_out'])
  })

  it('keeps the idle clock when the server repeats the idle time, also after a restart', () => {
    const b = cluster()
    const [task] = away(b, 12_000) as [LiveTask]
    b.advance(11 * SECOND)
    b.swapped(task)
    b.cycle()
    const idleSince = placementOf(task).idleSince
    b.wants(task, false, b.now - idleSince)
    expect(placementOf(task).idleSince).toBe(idleSince)
    const after = restarted(b)
    const again = after.cluster.tasks.get(task.spec.id) as LiveTask
    after.wants(again, false, after.now - idleSince)
    expect(placementOf(again)).toMatchObject({ idleSince, isEligible: true })
  })

  it('counts as idle since the last use if the task has worked since', () => {
    const b = cluster()
    const [task] = away(b, 12_000) as [LiveTask]
    b.advance(11 * SECOND)
    b.swapped(task)
    b.wants(task, true)
    b.cycle()
    b.advance(5 * SECOND)
    b.wants(task, false)
    b.submit({ vramMib: 10_000 })
    b.cycle()
    expect(residencies(task)).toEqual(['resident'])
    b.advance(IDLE_S * SECOND)
    b.cycle()
    expect(residencies(task)).toEqual(['swapping_out'])
  })

  it('leaves the rounds unchanged', () => {
    const b = cluster()
    const [task] = away(b, 12_000) as [LiveTask]
    const gpu = b.node('n').gpus[0]
    const before = structuredClone([gpu?.rounds.non_p0.round, [...(gpu?.rounds.non_p0.marks ?? [])]])
    b.advance(11 * SECOND)
    b.swapped(task)
    b.cycle()
    expect([gpu?.rounds.non_p0.round, [...(gpu?.rounds.non_p0.marks ?? [])]]).toEqual(before)
  })

  it('is repeated after the back-off if it failed', () => {
    const b = cluster()
    const [task] = away(b, 1000) as [LiveTask]
    b.advance(11 * SECOND)
    b.refuse(task, 'swap_in')
    b.cycle()
    b.advance(SWAP_BACK_OFF_MS - 1)
    expect(residencies(task)).toEqual(['swapped_out'])
    b.advance(1)
    expect(residencies(task)).toEqual(['swapping_in'])
  })

  it('is recorded as a decision with its sentence', () => {
    const b = cluster()
    b.cluster.eventLog.keepsDecisions = true
    away(b, 1000)
    b.advance(11 * SECOND)
    expect(b.decisions.at(-1)).toMatchObject({
      kind: 'swap_in',
      rule: 'eager_return',
      sentence:
        't1 returns to GPU 0 of n after 10 s out of VRAM without a request for it: no task ' +
        'waits for VRAM there, and 19,000 MiB stay free.',
    })
  })
})

describe('an eager return does not happen', () => {
  it('for a task that an operator swapped out, until the task wants the GPU, also after a restart', () => {
    const b = cluster()
    const task = b.submitSwappedOut({ vramMib: 1000 })
    b.cycle()
    b.advance(100 * SECOND)
    expect(residencies(task)).toEqual(['swapped_out'])
    const after = restarted(b)
    const again = after.cluster.tasks.get(task.spec.id) as LiveTask
    after.cycle()
    after.advance(100 * SECOND)
    expect(residencies(again)).toEqual(['swapped_out'])
    after.wants(again, true)
    after.cycle()
    expect(residencies(again)).toEqual(['swapping_in'])
  })

  it('for a task whose swap-in an operator cancelled', () => {
    const b = cluster()
    const [task, other] = away(b, 1000, 12_000) as [LiveTask, LiveTask]
    const busy = b.submit({ vramMib: 19_500 })
    b.settle()
    b.wants(busy, true)
    b.byHand(task, 'swap-in')
    b.cycle()
    b.byHand(task, 'swap-out')
    b.finished(busy)
    b.cycle()
    b.advance(100 * SECOND)
    expect(residencies(task, other)).toEqual(['swapped_out', 'swapping_in'])
  })

  it('to a cordoned, draining or silent node, until the node is available again', () => {
    for (const [close, open] of [
      [
        (b: ClusterBuilder) => b.cordon(b.node('n'), true),
        (b: ClusterBuilder) => b.cordon(b.node('n'), false),
      ],
      [
        (b: ClusterBuilder) => b.drain(b.node('n'), null),
        (b: ClusterBuilder) => b.cordon(b.node('n'), false),
      ],
      [(b: ClusterBuilder) => b.silence(b.node('n')), (b: ClusterBuilder) => b.heartbeat(b.node('n'))],
    ] as const) {
      const b = cluster()
      const [task] = away(b, 1000) as [LiveTask]
      close(b)
      b.cycle()
      b.advance(100 * SECOND)
      expect(residencies(task)).toEqual(['swapped_out'])
      open(b)
      b.cycle()
      expect(residencies(task)).toEqual(['swapping_in'])
    }
  })
})

it('A restarted controller returns tasks that were swapped out before the restart', () => {
  const b = cluster()
  const [task] = away(b, 1000) as [LiveTask]
  const after = restarted(b)
  const again = after.cluster.tasks.get(task.spec.id) as LiveTask
  after.cycle()
  expect(residencies(again)).toEqual(['swapped_out'])
  after.advance(10 * SECOND)
  expect(residencies(again)).toEqual(['swapping_in'])
})
