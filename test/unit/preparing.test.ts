/** Images and files are prepared before the start, while no VRAM is committed (decision 0122). */
import { describe, expect, it } from 'vitest'
import type { CommandResult } from '../../protocol/messages.ts'
import type { PreparationReport } from '../../protocol/preparing.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import { applyCommandResult, applyNodeEvent } from '../../controller/engine/inputs/nodes/node-events.ts'
import { applySnapshot } from '../../controller/engine/inputs/nodes/node-registry.ts'
import type { LiveNode, LiveTask } from '../../controller/state/facts.ts'
import { forkCluster } from '../../controller/state/snapshot/snapshot.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const FEATURES = ['image', 'files', 'prepare']
const IMAGE = 'team/train:1'
const RUNS: Partial<TaskRequest> = { command: ['train'], image: IMAGE, vramMib: 80 }

class Preparing extends ClusterBuilder {
  /** With one GPU that takes tasks of 100 MiB. */
  server(id: string, features: readonly string[] = FEATURES, mib = 110): LiveNode {
    return this.addNode({ id, gpus: [mib], features })
  }

  asked(): readonly string[] {
    return this.effects.flatMap((effect) =>
      effect.kind === 'prepare' ? [`${effect.taskId}/${effect.attempt} ${effect.nodeId}`] : [],
    )
  }

  answer(task: LiveTask, node: LiveNode, more: Partial<CommandResult> = {}): void {
    const result: CommandResult = {
      ...{ op: 'result', task_id: task.spec.id, attempt: task.attempt + 1, outcome: 'accepted' },
      ...{ reason: null, residency: 'none', generation: 0 },
      ...more,
    }
    applyCommandResult(this.cluster, node.id, 'prepare', result, node.snapshotSeq, this.now)
  }

  /** Sends a snapshot; returns what the answer tells the node to stop. */
  says(
    node: LiveNode,
    reports: readonly (Partial<PreparationReport> & { readonly task: LiveTask })[],
    images: readonly string[] = [],
  ): readonly string[] {
    const preparing = reports.map(({ task, ...more }) => ({
      ...{ task_id: task.spec.id, attempt: task.attempt + 1, state: 'preparing' as const },
      ...{ bytes_done: 0, bytes_total: null },
      ...more,
    }))
    const gpus = node.gpus.map(({ index, model, physicalMib, foreignMib }) => ({
      ...{ index, model, physical_mib: physicalMib, foreign_mib: foreignMib },
    }))
    const tasks = node.gpus.flatMap(({ placements }) =>
      placements
        .filter(({ startedAt }) => startedAt !== null)
        .map((p) => ({
          ...{ task_id: p.task.spec.id, attempt: p.attempt, residency: p.residency },
          ...{ generation: p.generation, gpus: p.gpus.map(({ index }) => index), vram_mib: p.demandMib },
          ...{ wants_gpu: p.wantsGpu, idle_ms: 0 },
        })),
    )
    const snapshot = { gpus, tasks, finished_unacked: [], preparing, images }
    const { stop } = applySnapshot(this.cluster, node, snapshot, node.snapshotSeq + 1, this.now)
    return stop.map(({ task_id, attempt }) => `${task_id}/${attempt}`)
  }

  /** Asked, accepted, and over. */
  prepared(task: LiveTask, node: LiveNode): void {
    this.answer(task, node)
    this.says(node, [{ task, state: 'prepared' }])
    this.cycle()
  }
}

const reasonOf = (b: Preparing, task: LiveTask) => b.explain(task)?.primary.reason

describe('a task with an image', () => {
  it('commits no VRAM while a node prepares it: another task takes the VRAM meanwhile', () => {
    const b = new Preparing()
    const node = b.server('n1')
    const task = b.submit(RUNS)
    b.cycle()
    expect(b.asked()).toEqual(['t1/1 n1'])
    expect([task.state, task.queue, node.gpus[0]?.swappableMib]).toEqual(['pending', null, 0])
    b.answer(task, node)
    b.says(node, [{ task, bytes_done: 3 * 1024 * 1024, bytes_total: 9 * 1024 * 1024 }])
    expect(b.explain(task)?.sentence).toBe(
      'The task is being prepared on n1 (image): 3 MiB of 9 MiB. No VRAM is committed during preparation.',
    )
    expect(reasonOf(b, task)).toBe('PREPARING')
    const other = b.submit({ vramMib: 60 })
    b.settle()
    expect(other.state).toBe('running')
    b.says(node, [{ task, state: 'prepared' }])
    b.cycle()
    expect(reasonOf(b, task)).toBe('WAITING_VRAM')
    b.finished(other)
    b.cycle()
    expect(task.state).toBe('assigned')
    expect(task.preparations).toEqual([])
    expect(b.asked()).toHaveLength(1)
  })

  it('keeps its place: prepared at the same time as a later task, it is placed first', () => {
    const b = new Preparing()
    const node = b.server('n1')
    const [first, second] = [b.submit(RUNS), b.submit(RUNS)]
    b.cycle()
    for (const task of [first, second]) b.answer(task, node)
    b.says(node, [
      { task: second, state: 'prepared' },
      { task: first, state: 'prepared' },
    ])
    b.cycle()
    expect([first.state, second.state]).toEqual(['assigned', 'pending'])
  })

  it('is placed at once on a server without the feature, and where the image is already', () => {
    const old = new Preparing()
    old.server('n1', ['image'])
    const [onOld, onKnown] = [old.submit(RUNS), new Preparing()]
    old.cycle()
    expect([onOld.state, old.asked()]).toEqual(['assigned', []])
    const node = onKnown.server('n1')
    const first = onKnown.submit({ ...RUNS, vramMib: 101 })
    onKnown.says(node, [], [IMAGE])
    const task = onKnown.submit(RUNS)
    onKnown.cycle()
    expect([first.state, task.state, onKnown.asked()]).toEqual(['pending', 'assigned', []])
  })

  it('prefers a node that has the image to one with a better score', () => {
    const b = new Preparing()
    // best_fit would take the smaller one.
    b.server('small', FEATURES, 100)
    const large = b.server('large', FEATURES, 200)
    b.says(large, [], [IMAGE])
    const task = b.submit(RUNS)
    b.cycle()
    expect(placementOf(task).node.id).toBe('large')
  })

  it('with an uploaded folder is prepared even where its image is', () => {
    const b = new Preparing()
    const node = b.server('n1')
    b.says(node, [], [IMAGE])
    const task = b.submit({ ...RUNS, workdir: 'a'.repeat(64) })
    b.cycle()
    expect(b.effects.at(-1)).toMatchObject({ kind: 'prepare', image: IMAGE, workdir: 'a'.repeat(64) })
    b.prepared(task, node)
    expect(task.state).toBe('assigned')
  })

  it('that is first in line is prepared where it reserves VRAM, before that is free', () => {
    const b = new Preparing({ reservation_after_seconds: 60 })
    const node = b.server('n1')
    const holder = b.submit({ vramMib: 100 })
    b.settle()
    const task = b.submit(RUNS)
    b.cycle()
    expect(b.asked()).toEqual([])
    b.advance(60_000)
    b.cycle()
    expect(b.asked()).toEqual(['t2/1 n1'])
    expect(node.gpus[0]?.reservations).toEqual([])
    b.prepared(task, node)
    expect(node.gpus[0]?.reservations).toMatchObject([{ task }])
    b.finished(holder)
    b.cycle()
    expect(task.state).toBe('assigned')
  })

  it('starts without preparation after other tasks took the VRAM on three prepared nodes', () => {
    const b = new Preparing()
    const nodes = ['n1', 'n2', 'n3', 'n4'].map((id) => b.server(id))
    const task = b.submit(RUNS)
    for (const node of nodes.slice(0, 3)) {
      b.cycle()
      b.answer(task, node)
      b.submit({ vramMib: 100 })
      b.cycle()
      b.says(node, [{ task, state: 'prepared' }])
    }
    for (const each of b.tasks) if (each.state === 'assigned' && each !== task) b.started(each)
    b.cycle()
    expect([b.asked().length, placementOf(task).node.id]).toEqual([3, 'n4'])
  })
})

describe('a preparation', () => {
  it('that a later snapshot does not name is repeated', () => {
    const b = new Preparing()
    const node = b.server('n1')
    const task = b.submit(RUNS)
    b.cycle()
    // Before the answer a snapshot says nothing.
    b.says(node, [])
    b.cycle()
    expect(b.asked()).toHaveLength(1)
    b.answer(task, node)
    b.says(node, [])
    b.cycle()
    expect(b.asked()).toEqual(['t1/1 n1', 't1/1 n1'])
  })

  it('ends with the silence of its node: another one is asked', () => {
    const b = new Preparing()
    const [node] = [b.server('n1'), b.server('n2')]
    const task = b.submit(RUNS)
    b.cycle()
    b.answer(task, node)
    b.silence(node)
    b.cycle()
    expect(b.asked()).toEqual(['t1/1 n1', 't1/1 n2'])
    // It is back, and its work is not wanted any more.
    expect(b.says(node, [{ task, state: 'preparing' }])).toEqual(['t1/1'])
  })

  it('ends with a cordon, and with the restart of its server', () => {
    const b = new Preparing()
    const node = b.server('n1')
    const task = b.submit(RUNS)
    b.cycle()
    b.answer(task, node)
    b.hello(node, {})
    b.cycle()
    expect(b.asked()).toHaveLength(2)
    b.answer(task, node)
    b.cordon(node, true)
    expect(b.says(node, [{ task }])).toEqual(['t1/1'])
    expect(task.preparations).toEqual([])
    expect(reasonOf(b, task)).toBe('NODES_CORDONED')
  })

  it('of a task that was cancelled, or runs elsewhere, is stopped by the next answer', () => {
    const b = new Preparing()
    const node = b.server('n1')
    const task = b.submit(RUNS)
    b.cycle()
    b.answer(task, node)
    b.cancel(task)
    expect(b.says(node, [{ task }])).toEqual(['t1/1'])
    expect([node.preparationCount, b.cluster.preparingOn.size]).toEqual([0, 0])
  })

  it('is known from the report of the node after a restart of the controller', () => {
    const b = new Preparing()
    const node = b.server('n1')
    const task = b.submit(RUNS)
    expect(b.says(node, [{ task, bytes_done: 5, bytes_total: 9 }])).toEqual([])
    b.cycle()
    expect(b.asked()).toEqual([])
    expect(task.preparations).toMatchObject([{ nodeId: 'n1', state: 'preparing', bytesDone: 5 }])
    b.says(node, [{ task, state: 'prepared' }])
    b.cycle()
    expect(task.state).toBe('assigned')
    // Its start is on its way: the node keeps naming it.
    const report = { task, attempt: 1, state: 'prepared' } as const
    expect(b.says(node, [report])).toEqual([])
  })

  it('is in a copy of the cluster as it is', () => {
    const b = new Preparing()
    const node = b.server('n1')
    const task = b.submit(RUNS)
    b.cycle()
    b.answer(task, node)
    const copy = forkCluster(b.cluster, b.now)
    expect(copy.tasks.get('t1')?.preparations).toEqual(task.preparations)
    expect(copy.tasks.get('t1')?.queue).toBeNull()
    expect(copy.nodes.get('n1')?.preparationCount).toBe(1)
    expect(copy.preparingOn.get('n1')?.size).toBe(1)
  })

  it('is not a right of every task: beyond eight of a node the others wait their turn', () => {
    const b = new Preparing()
    const node = b.server('n1')
    const tasks = Array.from({ length: 10 }, () => b.submit({ ...RUNS, vramMib: 5 }))
    b.cycle()
    expect(b.asked()).toHaveLength(8)
    const late = tasks[9] as LiveTask
    expect(b.explain(late)).toMatchObject({
      primary: { reason: 'PREPARING' },
      sentence: 'Waiting to be prepared (image): n1 is already preparing the maximum number of tasks.',
    })
    b.prepared(tasks[0] as LiveTask, node)
    expect(tasks[0]?.state).toBe('assigned')
    expect(b.asked()).toHaveLength(9)
  })

  it('that the node refuses is asked for elsewhere', () => {
    const b = new Preparing()
    const [node] = [b.server('n1'), b.server('n2')]
    const task = b.submit(RUNS)
    b.cycle()
    b.answer(task, node, { outcome: 'refused', reason: 'node_full' })
    b.cycle()
    expect(b.asked()).toEqual(['t1/1 n1', 't1/1 n2'])
  })

  it('leaves a held task alone, which is placed once it is released', () => {
    const b = new Preparing()
    const node = b.server('n1')
    const task = b.submit(RUNS)
    b.cycle()
    b.byHand(task, 'hold')
    b.prepared(task, node)
    expect([task.state, reasonOf(b, task)]).toEqual(['pending', 'HELD'])
    b.byHand(task, 'release')
    b.cycle()
    expect(task.state).toBe('assigned')
  })
})

describe('an image that cannot be had', () => {
  const failed = { state: 'failed', detail: 'manifest unknown' } as const
  const ofTask = { ...failed, start_refused: { cause: 'task', code: 'image_not_available' } } as const

  const found = { cause: 'task', code: 'image_not_found' } as const

  const refuse = (b: Preparing, task: LiveTask, nodes: readonly LiveNode[], report: object): void => {
    for (const node of nodes) {
      b.cycle()
      b.answer(task, node)
      expect(b.says(node, [{ task, ...failed, ...report }])).toEqual(['t1/1'])
    }
    b.cycle()
  }

  it('puts the task off that node; refused by all it waits, and fails after max_requeues waits', () => {
    const b = new Preparing()
    const nodes = [b.server('n1'), b.server('n2')]
    const task = b.submit({ ...RUNS, maxRequeues: 1 })
    refuse(b, task, nodes, ofTask)
    expect(b.explain(task)).toMatchObject({ primary: { reason: 'START_REFUSED' } })
    expect(b.explain(task)?.sentence).toContain('n1: manifest unknown; n2: manifest unknown')
    expect(task.attempt).toBe(0)
    b.advance(10 * 60_000)
    refuse(b, task, nodes, ofTask)
    expect([task.state, task.endCode]).toEqual(['failed', 'image_not_available'])
    expect(task.endReason).toBe('manifest unknown; tried again 1 times, as max_requeues allows')
    expect([...nodes].every(({ autoCordon }) => autoCordon === null)).toBe(true)
  })

  it('because no registry has it fails the task as soon as three nodes, or all of them, have said so', () => {
    for (const count of [1, 2, 3, 5]) {
      const b = new Preparing()
      const nodes = Array.from({ length: count }, (_, i) => b.server(`n${i}`))
      const task = b.submit({ ...RUNS, maxRequeues: 5 })
      refuse(b, task, nodes.slice(0, 3), { start_refused: found })
      expect([task.state, task.endCode, task.endReason]).toEqual([
        'failed',
        'image_not_available',
        'manifest unknown',
      ])
    }
  })

  it('because no registry has it is waited for if max_requeues is null, or a node says otherwise', () => {
    const b = new Preparing()
    const nodes = [b.server('n1'), b.server('n2')]
    const task = b.submit({ ...RUNS, maxRequeues: null })
    refuse(b, task, nodes, { start_refused: found })
    expect(reasonOf(b, task)).toBe('START_REFUSED')
    const mixed = new Preparing()
    const two = [mixed.server('n1'), mixed.server('n2')]
    const other = mixed.submit({ ...RUNS, maxRequeues: 5 })
    refuse(mixed, other, two.slice(0, 1), ofTask)
    refuse(mixed, other, two.slice(1), { start_refused: found })
    expect(reasonOf(mixed, other)).toBe('START_REFUSED')
  })

  it('from a registry goes to a busy node that has it, whatever three others say', () => {
    const b = new Preparing()
    const busy = b.server('n4')
    const holder = b.submit({ vramMib: 80 })
    b.settle()
    const nodes = ['n1', 'n2', 'n3'].map((id) => b.server(id))
    b.says(busy, [], [IMAGE])
    const task = b.submit({ ...RUNS, maxRequeues: 5 })
    for (const node of nodes) {
      b.cycle()
      b.answer(task, node)
      b.says(node, [{ task, ...failed, start_refused: found }])
    }
    b.cycle()
    expect([task.state, task.trouble.pause]).toEqual(['pending', null])
    b.finished(holder)
    b.cycle()
    expect([task.state, placementOf(task).node.id]).toEqual(['assigned', 'n4'])
  })

  it('because its registry is away is tried again on that node, which stays open for other tasks', () => {
    const b = new Preparing()
    const node = b.server('n1')
    for (const id of ['n2', 'n3', 'n4']) b.server(id, ['files'])
    const report = { ...failed, start_refused: { cause: 'host', code: 'registry_unreachable' } } as const
    const tasks = Array.from({ length: 4 }, () => b.submit({ ...RUNS, vramMib: 20 }))
    b.cycle()
    for (const task of tasks) b.answer(task, node)
    b.says(
      node,
      tasks.map((task) => ({ task, ...report })),
    )
    b.cycle()
    expect(node.autoCordon).toBeNull()
    expect(tasks.map((task) => reasonOf(b, task))).toEqual(tasks.map(() => 'START_REFUSED'))
    expect(tasks.every(({ trouble }) => trouble.pause === null)).toBe(true)
    expect(b.explain(tasks[0] as LiveTask)?.sentence).toContain(
      'manifest unknown. The controller tries again in 10 s',
    )
    expect(b.asked()).toHaveLength(4)
    b.advance(10_000)
    b.cycle()
    expect(b.asked()).toHaveLength(8)
  })

  it('because of the engine counts against the host, not the task', () => {
    const b = new Preparing()
    const node = b.server('n1')
    for (const id of ['n2', 'n3', 'n4']) b.server(id, ['files'])
    const report = { ...failed, start_refused: { cause: 'host', code: 'no_container_runtime' } } as const
    const tasks = Array.from({ length: 3 }, () => b.submit(RUNS))
    b.cycle()
    for (const task of tasks) b.answer(task, node)
    b.says(
      node,
      tasks.map((task) => ({ task, ...report })),
    )
    expect(node.autoCordon).toMatchObject({ code: 'no_container_runtime' })
    expect(tasks.every(({ trouble }) => trouble.refusedCount === 0 && trouble.pause === null)).toBe(true)
  })
})

describe('the digest of an image', () => {
  it('is kept from the first start, and a requeued attempt asks for it', () => {
    const b = new Preparing()
    b.server('n1', ['image'])
    const task = b.submit({ ...RUNS, image: 'reg.example:5000/team/train:1' })
    b.cycle()
    const image_digest = `sha256:${'1f'.repeat(32)}`
    applyNodeEvent(
      b.cluster,
      'n1',
      { kind: 'started', n: 1, task_id: 't1', attempt: 1, wants_gpu: false, image_digest },
      b.now,
    )
    expect(task.imageDigest).toBe(image_digest)
    b.requeue(task)
    b.stopped(task)
    b.cycle()
    expect(b.effects.filter(({ kind }) => kind === 'start')).toMatchObject([
      { image: 'reg.example:5000/team/train:1' },
      { image: `reg.example:5000/team/train@${image_digest}` },
    ])
  })
})
