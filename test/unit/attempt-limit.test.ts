/** A server says how many attempts it holds at once, and is sent no more (R11, NODE_TASK_LIMIT). */
import { describe, expect, it } from 'vitest'
import { cloneCluster } from '../../controller/engine/what-if/cluster-clone.ts'
import { wouldFitIf } from '../../controller/engine/explain/would-fit.ts'
import { nodeOf, recordOfNode } from '../../controller/engine/records.ts'
import { applySnapshot } from '../../controller/engine/node/node-registry.ts'
import { applyNodeEvent } from '../../controller/engine/node/node-events.ts'
import type { LiveNode } from '../../controller/engine/live.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'

/** A node of two GPUs that holds two attempts, and runs as many. */
function full() {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 0 })
  const node = b.addNode({ id: 'n1', gpus: [110, 110], maxAttempts: 2 })
  const running = [b.submit({ vramMib: 10 }), b.submit({ vramMib: 10 })]
  b.settle()
  return { b, node, running }
}

/** A heartbeat that also names an attempt of a task that the controller does not know. */
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
  applySnapshot(b.cluster, node, gpus, tasks, [], node.snapshotSeq + 1, b.now)
}

describe('a node at its limit of attempts', () => {
  it('gets no other task until one has ended there, whatever room its GPUs have', () => {
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

  it('is what a task that waits for it is told', () => {
    const { b } = full()
    const wait = b.explain(b.submit({ vramMib: 10 }))
    expect(wait?.primary).toMatchObject({
      reason: 'NODE_TASK_LIMIT',
      nodeIds: ['n1'],
      haveMib: null,
      needMib: null,
    })
    expect(wait?.sentence).toBe('Waits for a task to end: n1 has reached its maximum number of tasks.')
  })

  it('is told to an exclusive task as well', () => {
    const { b } = full()
    expect(b.explain(b.submit({ vramMib: null, gpuMode: 'exclusive' }))?.primary.reason).toBe(
      'NODE_TASK_LIMIT',
    )
  })

  it('does not hide that another node has room', () => {
    const { b } = full()
    b.addNode({ id: 'n2', gpus: [110] })
    const next = b.submit({ vramMib: 10 })
    b.cycle()
    expect(next.placement?.node.id).toBe('n2')
  })

  it('would take the task if another had ended there', () => {
    const { b, running } = full()
    const { changes } = wouldFitIf(b.cluster, b.submit({ vramMib: 10 }), b.now)
    expect(changes).toMatchObject([{ change: 'task_ends', task: running[0] }])
  })

  it('takes tasks again when its server comes back with a higher limit', () => {
    const { b, node } = full()
    const next = b.submit({ vramMib: 10 })
    b.hello(node, { max_attempts: 3 })
    b.cycle()
    expect(next.placement?.node).toBe(node)
  })
})

describe('what counts towards the limit', () => {
  it('is a task that owns bytes there and has not started', () => {
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

  it('is an attempt that the server names and that is no current one, until its end is heard of', () => {
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

  it('is the same in a copy of the cluster, and after a restart of the controller', () => {
    const { b, node } = full()
    nameUnknown(b, node)
    const settings = {
      config: b.cluster.config,
      overridesOf: () => ({ overcommitOverride: null, reserveOverrideMib: null }),
    }
    const copy = cloneCluster(b.cluster, settings, b.now).nodes.get('n1')
    expect([copy?.attemptCount, copy?.maxAttempts]).toEqual([3, 2])
    expect(nodeOf(recordOfNode(node), b.now).maxAttempts).toBe(2)
  })

  it('has the bound of the protocol where a server does not say', () => {
    const b = new ClusterBuilder()
    expect(b.addNode({ id: 'n1', gpus: [110] }).maxAttempts).toBe(1024)
  })
})

describe('a refused start', () => {
  it('is forgotten when an attempt ends on the node, before its next snapshot', () => {
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

  it('is not forgotten because another start is refused there', () => {
    const b = new ClusterBuilder()
    b.addNode({ id: 'n1', gpus: [110] })
    const tasks = [b.submit({ vramMib: 10 }), b.submit({ vramMib: 10 })]
    b.cycle()
    for (const task of tasks) b.refuse(task)
    b.cycle()
    expect(tasks.map(({ state }) => state)).toEqual(['pending', 'pending'])
  })
})
