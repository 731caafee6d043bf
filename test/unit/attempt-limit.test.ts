/** A server declares its maximum number of attempts, and receives no more (R11, NODE_TASK_LIMIT). */
import { describe, expect, it } from 'vitest'
import { forkCluster } from '../../controller/state/snapshot/snapshot.ts'
import { wouldFitIf } from '../../controller/query/preview/would-fit.ts'
import { nodeOf, recordOfNode } from '../../controller/state/records.ts'
import { applySnapshot } from '../../controller/engine/inputs/nodes/node-registry.ts'
import { applyNodeEvent } from '../../controller/engine/inputs/nodes/node-events.ts'
import type { LiveNode } from '../../controller/state/facts.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'

/** Creates a node with two GPUs and a limit of two attempts, both of them running. */
function full() {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 0 })
  const node = b.addNode({ id: 'n1', gpus: [110, 110], maxAttempts: 2 })
  const running = [b.submit({ vramMib: 10 }), b.submit({ vramMib: 10 })]
  b.settle()
  return { b, node, running }
}

/** Sends a heartbeat that also contains an attempt of a task unknown to the controller. */
function nameUnknown(b: ClusterBuilder, node: LiveNode): void {
  const gpus = node.gpus.map(({ index, model, physicalMib, foreignMib }) => ({
    index,
    model,
    physical_mib: physicalMib,
    foreign_mib: foreignMib,
  }))
  const base = {
    residency: 'resident',
    generation: 1,
    gpus: [0],
    vram_mib: 10,
    wants_gpu: true,
    idle_ms: 0,
  } as const
  const placed = b.tasks.flatMap(({ spec, placement }) =>
    placement === null ? [] : [{ task_id: spec.id, attempt: placement.attempt }],
  )
  const tasks = [...placed, { task_id: 'unknown', attempt: 1 }].map((ref) => ({ ...base, ...ref }))
  applySnapshot(b.cluster, node, { gpus, tasks, finished_unacked: [] }, node.snapshotSeq + 1, b.now)
}

describe('a node at its attempt limit', () => {
  it('receives no other task until one has ended, whatever VRAM is free', () => {
    const { b, node, running } = full()
    const next = b.submit({ vramMib: 10 })
    b.cycle()
    expect(next.state).toBe('pending')
    expect(node.attemptCount).toBe(2)
    b.finished(running[0] as (typeof running)[0])
    b.cycle()
    expect(next.placement?.node).toBe(node)
    expect(node.attemptCount).toBe(2)
  })

  it('is the reason that a waiting task is given', () => {
    const { b } = full()
    const wait = b.explain(b.submit({ vramMib: 10 }))
    expect(wait?.primary).toMatchObject({
      reason: 'NODE_TASK_LIMIT',
      nodeIds: ['n1'],
      haveMib: null,
      needMib: null,
    })
    expect(wait?.sentence).toBe('Waiting for a task to end: n1 has reached its maximum number of tasks.')
  })

  it('is also the reason that an exclusive task is given', () => {
    const { b } = full()
    expect(b.explain(b.submit({ vramMib: null, gpuMode: 'exclusive' }))?.primary.reason).toBe(
      'NODE_TASK_LIMIT',
    )
  })

  it('does not affect a node with free capacity', () => {
    const { b } = full()
    b.addNode({ id: 'n2', gpus: [110] })
    const next = b.submit({ vramMib: 10 })
    b.cycle()
    expect(next.placement?.node.id).toBe('n2')
  })

  it('would take the task if another task ended', () => {
    const { b, running } = full()
    const { changes } = wouldFitIf(b.cluster, b.submit({ vramMib: 10 }), b.now)
    expect(changes).toMatchObject([{ change: 'task_ends', task: running[0] }])
  })

  it('accepts tasks again when its server returns with a higher limit', () => {
    const { b, node } = full()
    const next = b.submit({ vramMib: 10 })
    b.hello(node, { max_attempts: 3 })
    b.cycle()
    expect(next.placement?.node).toBe(node)
  })
})

describe('the attempt limit', () => {
  it('counts a task that has reserved VRAM there and has not started', () => {
    const b = new ClusterBuilder({ default_vram_overcommit_percent: 100 })
    const node = b.addNode({ id: 'n1', gpus: [110], maxAttempts: 2 })
    b.submit({ vramMib: 90 })
    b.settle()
    b.advance(400_000)
    const owner = b.submit({ vramMib: 90 })
    b.cycle()
    expect([owner.placementEntry?.hasReserved, node.attemptCount]).toEqual([true, 2])
    const small = b.submit({ vramMib: 10 })
    b.cycle()
    expect(small.state).toBe('pending')
  })

  it('counts an attempt that the server reports and that is not current, until its end is reported', () => {
    const b = new ClusterBuilder()
    const node = b.addNode({ id: 'n1', gpus: [110], maxAttempts: 1 })
    nameUnknown(b, node)
    const task = b.submit({ vramMib: 10 })
    b.cycle()
    expect(task.state).toBe('pending')
    expect(node.attemptCount).toBe(1)
    const end = {
      kind: 'finished',
      n: 1,
      task_id: 'unknown',
      attempt: 1,
      outcome: 'stopped',
      exit_code: null,
      detail: null,
    } as const
    applyNodeEvent(b.cluster, 'n1', end, b.now)
    b.cycle()
    expect(task.placement?.node).toBe(node)
  })

  it('is equal in a copy of the cluster and after a restart of the controller', () => {
    const { b, node } = full()
    nameUnknown(b, node)
    const copy = forkCluster(b.cluster, b.now).nodes.get('n1')
    expect([copy?.attemptCount, copy?.maxAttempts]).toEqual([3, 2])
    expect(nodeOf(recordOfNode(node), b.now).maxAttempts).toBe(2)
  })

  it('is the maximum of the protocol if the server declares none', () => {
    const b = new ClusterBuilder()
    expect(b.addNode({ id: 'n1', gpus: [110] }).maxAttempts).toBe(1024)
  })
})

describe('a refused start', () => {
  it('is cleared when an attempt ends on the node, before its next snapshot', () => {
    const b = new ClusterBuilder()
    const node = b.addNode({ id: 'n1', gpus: [110] })
    const running = b.submit({ vramMib: 10 })
    b.settle()
    const task = b.submit({ vramMib: 10 })
    b.cycle()
    b.refuse(task)
    b.cycle()
    expect(task.state).toBe('pending')
    b.finished(running)
    b.cycle()
    expect(task.placement?.node).toBe(node)
  })

  it('is not cleared because another start is refused there', () => {
    const b = new ClusterBuilder()
    b.addNode({ id: 'n1', gpus: [110] })
    const tasks = [b.submit({ vramMib: 10 }), b.submit({ vramMib: 10 })]
    b.cycle()
    for (const task of tasks) b.refuse(task)
    b.cycle()
    expect(tasks.map(({ state }) => state)).toEqual(['pending', 'pending'])
  })
})
