import { describe, expect, it } from 'vitest'
import type { Decision } from '../../controller/model/decision.ts'
import { MAX_CANDIDATES, MAX_CONSIDERED_GPUS } from '../../controller/model/decision.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import { swapOutTask } from '../../controller/engine/inputs/commands/swap-commands.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'

/** Creates a cluster that records decisions; `of` returns those of one kind so far. */
function recording(config = {}): {
  readonly b: ClusterBuilder
  readonly of: (kind: Decision['kind']) => readonly Decision[]
} {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 300, ...config })
  b.cluster.eventLog.keepsDecisions = true
  return { b, of: (kind) => b.decisions.filter((decision) => decision.kind === kind) }
}

/** Creates a task that is placed, started, and idle for longer than the idle period. */
function idle(b: ClusterBuilder, vramMib: number, more = {}): LiveTask {
  const task = b.submit({ vramMib, ...more })
  b.cycle()
  b.started(task)
  b.advance(400_000)
  return task
}

describe('the record of a placement', () => {
  it('names the GPUs that admitted the task, best first, and the rule', () => {
    const { b, of } = recording()
    b.addNode({ id: 'n1', gpus: [100, 60] })
    b.addNode({ id: 'n2', gpus: [80] })
    const task = b.submit({ vramMib: 50, name: 'train' })
    b.cycle()
    const [placed] = of('placement')
    expect(placed).toMatchObject({
      taskId: task.spec.id,
      nodeId: 'n1',
      gpus: [1],
      rule: 'fits_now',
      strategy: 'best_fit',
      gpusConsidered: [
        { nodeId: 'n1', gpu: 1, key1: 50, isChosen: true },
        { nodeId: 'n2', gpu: 0, key1: 70, isChosen: false },
        { nodeId: 'n1', gpu: 0, key1: 90, isChosen: false },
      ],
      hasMoreGpus: false,
    })
    expect(placed?.sentence).toBe(
      'train starts on GPU 1 of n1: its 50 MiB fit there now, and of all places where it fits, this one ' +
        'leaves the least VRAM free.',
    )
    expect(b.events.find(({ seq }) => seq === placed?.number)).toMatchObject({
      kind: 'task_placed',
      taskId: task.spec.id,
    })
  })

  it('names a few GPUs and says that there were more', () => {
    const { b, of } = recording()
    for (let i = 0; i < 9; i++) b.addNode({ id: `n${i}`, gpus: [100] })
    b.submit({ vramMib: 50 })
    b.cycle()
    expect(of('placement')[0]?.gpusConsidered).toHaveLength(MAX_CONSIDERED_GPUS)
    expect(of('placement')[0]?.hasMoreGpus).toBe(true)
  })
})

describe('the record of a swap-out', () => {
  it('names every candidate with its keys, the victims, and the rule', () => {
    const { b, of } = recording()
    b.addNode({ id: 'n1', gpus: [110] })
    const tasks = [30, 40, 30].map((mib, i) => idle(b, mib, { name: `idle-${i}` }))
    const eager = b.submit({ vramMib: 25, name: 'eager' })
    b.cycle()
    const [decision] = of('swap_out')
    expect(decision).toMatchObject({
      taskId: eager.spec.id,
      rule: 'victims_cover',
      victimIds: [tasks[0]?.spec.id],
      missing: [{ gpu: 0, mib: 25 }],
      candidatesLeftOut: 0,
      swapNumber: 1,
    })
    // With equal VRAM and counts, the task that is idle longest is chosen.
    expect(decision?.candidates[0]).toEqual({
      taskId: tasks[0]?.spec.id,
      taskName: 'idle-0',
      gpu: 0,
      level: 'non_p0_not_yet_swapped',
      lastSwapOut: null,
      mib: 30,
      idleMs: 1_200_000,
      chosenBy: 'oldest_then_fewest_bytes',
    })
    expect(decision?.candidates.slice(1).map(({ chosenBy }) => chosenBy)).toEqual([null, null])
    expect(decision?.sentence).toBe(
      'idle-0 (30 MiB, idle 1200 s) is swapped out of GPU 0 of n1 so that eager can start: 25 MiB were ' +
        'missing, and of 3 eligible tasks it is among the least recently swapped out, and moves ' +
        'the fewest bytes.',
    )
    expect(b.events.find(({ seq }) => seq === decision?.number)).toMatchObject({
      kind: 'swap_decided',
      data: { decision: 1 },
    })
    b.settle()
    expect(of('placement').at(-1)).toMatchObject({
      taskId: eager.spec.id,
      rule: 'victims_left',
      causedBy: decision?.number,
    })
  })

  it('names the swap method of a victim where it is not the usual one', () => {
    const { b, of } = recording()
    b.addNode({ id: 'n1', gpus: [50], features: ['swap_engine'] })
    idle(b, 30, { name: 'chat', swapMethod: 'engine' })
    b.submit({ vramMib: 40, name: 'train' })
    b.cycle()
    expect(of('swap_out')[0]?.sentence).toContain(
      'chat (30 MiB, idle 400 s, by its inference engine) is swapped',
    )
  })

  it('has a limited number of candidates, the first victims, and counts the others', () => {
    const { b, of } = recording({ max_tasks_per_gpu: 64 })
    b.addNode({ id: 'n1', gpus: [60] })
    for (let i = 0; i < MAX_CANDIDATES + 8; i++) {
      b.submit({ vramMib: 1 })
      b.cycle()
    }
    b.settle()
    b.advance(400_000)
    b.submit({ vramMib: 45 })
    b.cycle()
    const [decision] = of('swap_out')
    expect(decision?.candidates).toHaveLength(MAX_CANDIDATES)
    expect(decision?.candidatesLeftOut).toBe(8)
    expect(decision?.victimIds).toHaveLength(35)
    expect(decision?.candidates.every(({ chosenBy }) => chosenBy !== null)).toBe(true)
  })

  it('also exists for a swap-out by an operator', () => {
    const { b, of } = recording()
    b.addNode({ id: 'n1', gpus: [100], features: ['swap_hooks'] })
    const task = idle(b, 40, { name: 'train', swapMethod: 'hooks' })
    expect(swapOutTask(b.cluster, task.spec.id, b.now).ok).toBe(true)
    b.cycle()
    expect(of('swap_out')).toMatchObject([
      {
        rule: 'operator',
        victimIds: [task.spec.id],
        sentence: 'train is swapped out of GPU 0 of n1, by its hooks: requested by an operator.',
      },
    ])
  })
})

describe('the record of a return or growth', () => {
  it('names the other waiting entries', () => {
    const { b, of } = recording()
    b.addNode({ id: 'n1', gpus: [110] })
    const [first, second] = [idle(b, 60, { name: 'first' }), idle(b, 40)]
    const eager = b.submit({ vramMib: 60 })
    b.settle()
    expect(of('swap_out')[0]?.victimIds).toEqual([first.spec.id])
    b.wants(first, true)
    b.cycle()
    b.advance(5_000)
    b.finished(eager)
    b.cycle()
    expect(of('swap_in')).toMatchObject([
      { taskId: first.spec.id, rule: 'bytes_free', waitedMs: 5_000, others: [] },
    ])
    b.finished(first)
    b.wantsToGrow(second, 55)
    b.cycle()
    expect(of('growth_granted')).toMatchObject([{ taskId: second.spec.id, rule: 'bytes_free' }])
    expect(of('growth_granted')[0]?.sentence).toContain(
      'gets 15 MiB more on GPU 0 of n1, 55 MiB in total: the VRAM is free.',
    )
  })

  it('states the reason of a refusal', () => {
    const { b, of } = recording()
    b.addNode({ id: 'n1', gpus: [110] })
    const task = idle(b, 60, { noswap: 1, name: 'fixed' })
    idle(b, 40, { noswap: 1 })
    b.wantsToGrow(task, 80)
    b.cycle()
    b.advance(310_000)
    b.cycle()
    expect(of('growth_refused')).toMatchObject([
      { taskId: task.spec.id, rule: 'waited_too_long', waitedMs: 300_000 },
    ])
  })
})

it('A store without decisions records none, and the events are equal', () => {
  const run = (keepsDecisions: boolean) => {
    const b = new ClusterBuilder({ default_vram_overcommit_percent: 300 })
    b.cluster.eventLog.keepsDecisions = keepsDecisions
    b.addNode({ id: 'n1', gpus: [110] })
    for (const mib of [30, 40, 30]) idle(b, mib)
    b.submit({ vramMib: 25 })
    b.settle()
    return b
  }
  const [asked, left] = [run(true), run(false)]
  expect(left.decisions).toEqual([])
  expect(asked.decisions.length).toBeGreaterThan(4)
  expect(asked.events).toEqual(left.events)
})
