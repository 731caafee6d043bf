import { describe, expect, it } from 'vitest'
import type { LiveTask } from '../../controller/state/facts.ts'
import type { ReasonDetail, WaitExplanation } from '../../controller/query/explain/explain.ts'
import { WAIT_REASONS } from '../../controller/query/explain/explain.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const IDLE_MS = 300_000

/** GPUs of 110 MiB with a reserve of 10 MiB: 100 MiB are usable, and 150 MiB can be committed at 50 %. */
function cluster(config: ConstructorParameters<typeof ClusterBuilder>[0] = {}): ClusterBuilder {
  const b = new ClusterBuilder(config)
  b.addNode({ id: 'n1', gpus: [110] })
  b.cycle()
  return b
}

function explained(b: ClusterBuilder, task: LiveTask): WaitExplanation {
  const explanation = b.explain(task)
  if (explanation === null) throw new Error(`task ${task.spec.id} does not wait`)
  return explanation
}

/** Returns the reason why this task still waits after everything that can happen at once has happened. */
function waitOf(b: ClusterBuilder, request: Parameters<ClusterBuilder['submit']>[0]): WaitExplanation {
  const task = b.submit(request)
  b.cycle()
  return explained(b, task)
}

/** `REASON have/need on nodes`. */
function brief({ reason, haveMib, needMib, nodeIds }: ReasonDetail): string {
  return `${reason} ${haveMib ?? '-'}/${needMib ?? '-'} on ${nodeIds.join(',')}`
}

describe('a pending task that can never be placed', () => {
  it('is on hold', () => {
    const b = cluster()
    const task = b.submit({ vramMib: 50 })
    b.cluster.dequeue(task)
    task.isHeld = true
    b.cycle()
    const { primary, sentence, queuePosition } = explained(b, task)
    expect(brief(primary)).toBe('HELD -/- on ')
    expect(sentence).toBe('On hold: an operator must release the task before it is placed.')
    expect(queuePosition).toBeNull()
  })

  it('targets a group that does not exist', () => {
    const { primary, sentence, secondary } = waitOf(cluster(), { groups: ['a', 'b'] })
    expect(primary.reason).toBe('GROUP_NOT_FOUND')
    expect(sentence).toBe('The task targets groups a, b, which do not exist.')
    expect(secondary).toEqual([])
  })

  it('targets a group without nodes', () => {
    const b = cluster()
    b.group('a', [])
    const { primary, sentence } = waitOf(b, { groups: ['a'] })
    expect(primary.reason).toBe('GROUP_EMPTY')
    expect(sentence).toBe('The task targets group a, which has no nodes.')
  })

  it('needs more than any GPU has', () => {
    const b = cluster()
    b.addNode({ id: 'n2', gpus: [120] })
    const { primary, sentence, queuePosition } = waitOf(b, { vramMib: 111 })
    expect(brief(primary)).toBe('NEVER_FITS 110/111 on n2,n1')
    expect(sentence).toBe(
      'The task can never fit: it needs 111 MiB on one GPU; the best of 2 nodes, n2, offers 110 MiB ' +
        '(physical VRAM minus the reserve).',
    )
    expect(queuePosition).toBe(1)
  })

  it('needs more GPUs than any node has', () => {
    const b = cluster()
    b.addNode({ id: 'n2', gpus: [50, 50, 50] })
    b.addNode({ id: 'n3', gpus: [110, 110] })
    const { primary, secondary, sentence } = waitOf(b, { vramMib: 60, gpuCount: 3 })
    expect(brief(primary)).toBe('EXCEEDS_NODE_GPU_COUNT -/- on n3,n1')
    expect(secondary.map(brief)).toEqual(['NEVER_FITS 40/60 on n2'])
    expect(sentence).toBe(
      'The task can never fit: it needs 3 GPUs on one node; the best of 2 nodes, n3, has 2.',
    )
  })
})

describe('a pending task without a node', () => {
  it('waits for a node to register', () => {
    const b = new ClusterBuilder()
    expect(waitOf(b, {}).sentence).toBe('Waiting for a node: no node without a group has registered.')
    b.group('a', ['later'])
    const { primary, sentence } = waitOf(b, { groups: ['a'] })
    expect(primary.reason).toBe('NO_NODES')
    expect(sentence).toBe('Waiting for a node: no node in group a has registered.')
  })

  it('waits for nodes that are offline, ignoring cordoned and too small nodes', () => {
    const b = cluster()
    b.addNode({ id: 'n2', gpus: [50] })
    b.silence(b.node('n1'))
    const { primary, secondary, sentence } = waitOf(b, { vramMib: 60 })
    expect(brief(primary)).toBe('NODES_OFFLINE -/- on n1')
    expect(secondary.map(brief)).toEqual(['NEVER_FITS 40/60 on n2'])
    expect(sentence).toBe('Waiting for a node: the task would fit on n1, which is offline.')
  })

  it('waits for a node that runs commands, while a lease uses a node that does not', () => {
    const b = new ClusterBuilder()
    b.addNode({ id: 'n1', gpus: [110], allowExec: false })
    b.cycle()
    const lease = b.submit({ vramMib: 20, command: null })
    const { primary, sentence } = waitOf(b, { vramMib: 60, command: ['true'] })
    expect(lease.state).toBe('assigned')
    expect(primary.reason).toBe('EXEC_NOT_ALLOWED')
    expect(sentence).toBe(
      'Waiting for a node that runs commands: the task would fit on n1, which accepts only leases. To ' +
        'allow commands, start its server with `headroom gpu-server --allow-exec`.',
    )
    const two = b.submit({ vramMib: 10, gpuCount: 1, command: ['true'], noswap: 1 })
    b.cycle()
    expect(two.state).toBe('pending')
    b.addNode({ id: 'n2', gpus: [110] })
    b.cycle()
    expect(b.tasks.map((task) => task.placement?.node.id)).toEqual(['n1', 'n2', 'n2'])
  })

  it('waits for a cordon to end', () => {
    const b = cluster()
    for (const id of ['n2', 'n3', 'n4', 'n5']) b.addNode({ id, gpus: [110] })
    for (const id of ['n1', 'n2', 'n3', 'n4']) b.cordon(b.node(id), true)
    b.silence(b.node('n5'))
    const { primary, secondary, sentence } = waitOf(b, { vramMib: 60 })
    expect(primary.reason).toBe('NODES_CORDONED')
    expect(secondary.map(brief)).toEqual(['NODES_OFFLINE -/- on n5'])
    expect(sentence).toBe(
      'Waiting for a node: the task would fit on n1, n2, n3 and 1 more, which are cordoned.',
    )
  })

  it('names at most twenty nodes and counts all', () => {
    const b = cluster()
    for (let i = 10; i < 40; i++) b.addNode({ id: `m${i}`, gpus: [110] })
    for (const node of b.cluster.nodes.values()) b.cordon(node, true)
    const { primary } = waitOf(b, {})
    expect(primary.nodeCount).toBe(31)
    expect(primary.nodeIds).toHaveLength(20)
    expect(primary.nodeIds[0]).toBe('m10')
  })
})

describe('a pending task without enough capacity', () => {
  it('meets the task limit of every GPU', () => {
    const b = cluster({ max_tasks_per_gpu: 1 })
    b.submit({ vramMib: 10 })
    const { primary, sentence } = waitOf(b, { vramMib: 10 })
    expect(brief(primary)).toBe('MAX_TASKS_PER_GPU -/- on n1')
    expect(sentence).toBe(
      'Waiting for a task to end: not enough GPUs on n1 are below the maximum of 1 per GPU ' +
        '(max_tasks_per_gpu).',
    )
  })

  it('lacks host memory for swapping the tasks of its GPU', () => {
    const b = new ClusterBuilder({ default_vram_overcommit_percent: 50 })
    b.addNode({ id: 'n1', gpus: [110], hostSwapMib: 120 })
    b.submit({ vramMib: 90 })
    const { primary, sentence } = waitOf(b, { vramMib: 40 })
    expect(brief(primary)).toBe('SWAP_SPACE_EXHAUSTED 30/40 on n1')
    expect(sentence).toBe(
      'Waiting for host memory for swap-outs: the task needs 40 MiB on one GPU; ' +
        'n1 can accept 30 MiB with the remaining host memory.',
    )
  })

  it('lacks host memory for several GPUs together', () => {
    const b = new ClusterBuilder({ default_vram_overcommit_percent: 50 })
    b.addNode({ id: 'n1', gpus: [110, 110], hostSwapMib: 200 })
    for (const vramMib of [70, 70]) b.submit({ vramMib })
    b.settle()
    b.advance(IDLE_MS)
    const { primary, sentence } = waitOf(b, { vramMib: 40, gpuCount: 2 })
    expect(brief(primary)).toBe('SWAP_SPACE_EXHAUSTED -/- on n1')
    expect(sentence).toContain('on n1, its GPUs together would need more host memory than is free')
  })

  it('waits for commit room and names the GPU with the most', () => {
    const b = cluster()
    b.addNode({ id: 'n2', gpus: [110] })
    b.submit({ vramMib: 80 })
    b.submit({ vramMib: 70 })
    const { primary, secondary, sentence, queuePosition } = waitOf(b, { vramMib: 60 })
    expect(brief(primary)).toBe('WAITING_VRAM 30/60 on n2,n1')
    expect(secondary).toEqual([])
    expect(sentence).toBe(
      'Waiting for VRAM: the task needs 60 MiB on one GPU; the best of 2 nodes, n2, has 30 MiB of commit ' +
        'room left.',
    )
    expect(queuePosition).toBe(1)
  })

  it('needs physical VRAM when it is noswap, and says when a victim becomes eligible', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    for (const vramMib of [30, 30, 30]) b.submit({ vramMib })
    b.settle()
    const { primary, secondary, retryAt, sentence } = waitOf(b, { vramMib: 20, noswap: 1 })
    expect([primary, ...secondary].map(brief)).toEqual([
      'WAITING_PHYSICAL_VRAM 10/20 on n1',
      'NO_ELIGIBLE_VICTIM 10/20 on n1',
    ])
    expect(retryAt).toBe(b.now + IDLE_MS)
    expect(sentence).toBe(
      'Waiting for physical VRAM: the noswap task needs 20 MiB on one GPU; n1 has 10 MiB free. The ' +
        'next swap-out is possible in 300 s at the earliest.',
    )
  })

  it('explains that it could never be resident next to the noswap tasks', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    b.submit({ vramMib: 80, noswap: 1 })
    const { primary, secondary, sentence } = waitOf(b, { vramMib: 30 })
    expect([primary, ...secondary].map(brief)).toEqual(['NEVER_RESIDENT 20/30 on n1'])
    expect(sentence).toBe(
      'Waiting for noswap tasks or foreign processes to free VRAM: the task needs 30 MiB on one GPU; ' +
        'n1 can offer 20 MiB.',
    )
  })

  it('would prevent the return of a placed task', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    b.submit({ vramMib: 70 })
    const { primary, sentence } = waitOf(b, { vramMib: 31, noswap: 1 })
    expect(brief(primary)).toBe('WOULD_STRAND 30/31 on n1')
    expect(sentence).toBe(
      'Waiting so that placed tasks can return to VRAM: the noswap task needs 31 MiB on one GPU; ' +
        'n1 can spare 30 MiB.',
    )
  })

  it('finds enough VRAM in total, but not on one GPU', () => {
    const b = new ClusterBuilder()
    b.addNode({ id: 'n1', gpus: [110, 110] })
    for (const vramMib of [70, 60]) b.submit({ vramMib })
    const { primary, sentence } = waitOf(b, { vramMib: 50 })
    expect(brief(primary)).toBe('FRAGMENTED 40/50 on n1')
    expect(sentence).toBe(
      'Waiting for unfragmented VRAM: the task needs 50 MiB on one GPU; n1 has enough in total, but no ' +
        'more than 40 MiB on one GPU.',
    )
  })

  it('finds each resource on some GPU, but no GPU with all of them', () => {
    const b = new ClusterBuilder({ default_vram_overcommit_percent: 20 })
    b.addNode({ id: 'n1', gpus: [110, 110] })
    for (const request of [{ vramMib: 80, noswap: 1 }, { vramMib: 60 }, { vramMib: 50 }] as const) {
      b.submit(request)
      b.settle()
      b.advance(IDLE_MS)
    }
    const { primary, secondary } = waitOf(b, { vramMib: 30 })
    expect([primary, ...secondary].map(brief)).toEqual(['FRAGMENTED 22/30 on n1'])
  })

  it('names the reason of the last remaining nodes as primary, not the reason of excluded nodes', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    b.addNode({ id: 'n2', gpus: [110] })
    b.configureNode(b.node('n2'), { overcommitPercent: 0 })
    for (const vramMib of [90, 90]) b.submit({ vramMib })
    b.settle()
    const { primary, secondary } = waitOf(b, { vramMib: 40 })
    expect(brief(primary)).toBe('NO_ELIGIBLE_VICTIM 10/40 on n1')
    expect(secondary.map(brief)).toEqual(['WAITING_VRAM 10/40 on n2'])
  })
})

describe('a pending task and exclusive tasks', () => {
  it('waits for an empty GPU if it is exclusive', () => {
    const b = cluster()
    b.submit({ vramMib: 30 })
    const { primary, sentence } = waitOf(b, { vramMib: null, gpuMode: 'exclusive' })
    expect(brief(primary)).toBe('WAITING_EXCLUSIVE_GPU 70/100 on n1')
    expect(sentence).toBe(
      'Waiting for a GPU without any other task: n1 is closest, with 70 MiB of 100 MiB unused.',
    )
  })

  it('waits for an exclusive task to end', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    b.submit({ vramMib: 30, gpuMode: 'exclusive' })
    const { primary, sentence } = waitOf(b, { vramMib: 20 })
    expect(brief(primary)).toBe('WAITING_EXCLUSIVE_GPU 0/20 on n1')
    expect(sentence).toBe(
      'Waiting for an exclusive task to end: this task needs 20 MiB on one GPU; exclusive tasks occupy ' +
        'the GPUs of n1.',
    )
  })

  it('does not fit next to foreign memory if it is exclusive', () => {
    const b = cluster()
    b.heartbeat(b.node('n1'), { 0: 40 })
    expect(brief(waitOf(b, { vramMib: 70, gpuMode: 'exclusive' }).primary)).toBe('NEVER_RESIDENT 60/70 on n1')
  })
})

describe('a pending task and its victims', () => {
  it('waits for a victim to become eligible, then for its swap-out, then for the node', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    const holder = b.submit({ vramMib: 90 })
    b.settle()
    const task = b.submit({ vramMib: 40 })
    b.cycle()
    const waiting = explained(b, task)
    expect(brief(waiting.primary)).toBe('NO_ELIGIBLE_VICTIM 10/40 on n1')
    expect(waiting.retryAt).toBe(b.now + IDLE_MS)
    expect(waiting.sentence).toBe(
      'Waiting for a victim: the task needs 40 MiB on one GPU; n1 has 10 MiB free or used by tasks that ' +
        'may be swapped out. The next swap-out is possible in 300 s at the earliest.',
    )
    b.advance(IDLE_MS)
    b.cycle()
    const leaving = explained(b, task)
    expect(brief(leaving.primary)).toBe('SWAPPING_OUT_FOR_YOU 10/40 on n1')
    expect(leaving.sentence).toBe(
      'The task starts on GPU 0 of n1 once other tasks are swapped out: it needs 40 MiB, and 10 MiB is ' +
        'available.',
    )
    expect(leaving.retryAt).toBeNull()
    b.swapped(holder)
    b.cycle()
    const placed = explained(b, task)
    expect(brief(placed.primary)).toBe('AWAITING_NODE_ACK -/- on n1')
    expect(placed.sentence).toBe('The task is placed on GPU 0 of n1. The node has not confirmed the start.')
    b.started(task)
    expect(b.explain(task)).toBeNull()
  })

  it('names the P0 task that cannot be its victim', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    b.submit({ vramMib: 90, priority: 0, name: 'serving' })
    b.settle()
    b.advance(IDLE_MS)
    const { primary, retryAt, sentence } = waitOf(b, { vramMib: 40 })
    expect(primary.reason).toBe('NO_ELIGIBLE_VICTIM')
    expect(retryAt).toBeNull()
    expect(sentence).toContain('serving (P0) uses 90 MiB there and is swapped out only for P0 tasks.')
  })

  it('says that there is no eligible victim', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    const busy = b.submit({ vramMib: 90 })
    b.settle()
    b.wants(busy, true)
    expect(waitOf(b, { vramMib: 40 }).sentence).toContain('No other task may be swapped out now.')
  })
})

describe('a task that its node has not confirmed', () => {
  it('waits for the confirmation of a node that is offline', () => {
    const b = cluster()
    const task = b.submit({ vramMib: 40 })
    b.cycle()
    b.silence(b.node('n1'))
    const { primary, secondary, sentence } = explained(b, task)
    expect([primary, ...secondary].map(brief)).toEqual([
      'NODES_OFFLINE -/- on n1',
      'AWAITING_NODE_ACK -/- on n1',
    ])
    expect(sentence).toBe(
      'The task is placed on GPU 0 of n1. The node is offline and has not confirmed the start.',
    )
  })

  it('was refused and may be placed there again after the next report', () => {
    const b = cluster()
    const task = b.submit({ vramMib: 40 })
    b.cycle()
    b.refuse(task)
    b.cycle()
    const { primary, sentence } = explained(b, task)
    expect(brief(primary)).toBe('AWAITING_NODE_ACK -/- on n1')
    expect(sentence).toBe(
      'The task was refused by n1. It can be placed there again after the next report of the node, or ' +
        'when another task ends there.',
    )
    b.heartbeat(b.node('n1'))
    expect(explained(b, task).primary.reason).toBe('QUEUED_BEHIND')
  })
})

describe('a task that fits', () => {
  it('waits while its VRAM is reserved for a task that has waited longer', () => {
    const b = cluster()
    b.submit({ vramMib: 60 })
    const head = b.submit({ vramMib: 90, name: 'large' })
    b.settle()
    b.advance(310_000)
    b.cycle()
    const { primary, sentence, queuePosition } = waitOf(b, { vramMib: 30 })
    expect(explained(b, head).primary.reason).toBe('WAITING_VRAM')
    expect(brief(primary)).toBe('RESERVED_FOR_ANOTHER 0/30 on n1')
    expect(sentence).toBe(
      'Waiting behind a task that has waited longer: this task needs 30 MiB on one GPU; apart from the ' +
        'VRAM reserved for large, n1 has 0 MiB.',
    )
    expect(queuePosition).toBe(2)
  })

  it('waits for earlier tasks when the queue is strict', () => {
    const b = cluster({ placement_strategy: 'fifo' })
    for (const vramMib of [60, 50, 50, 200]) b.submit({ vramMib })
    const { primary, secondary, sentence, queuePosition } = waitOf(b, { vramMib: 30 })
    expect([primary, ...secondary].map(brief)).toEqual(['QUEUED_BEHIND 40/30 on n1'])
    expect(sentence).toBe(
      'The task fits on GPU 0 of n1, but 2 tasks are ahead of it, and its pool is served in strict order.',
    )
    expect(queuePosition).toBe(3)
  })

  it('also names earlier tasks when the queue is strict and the task does not fit', () => {
    const b = cluster({ placement_strategy: 'fifo' })
    for (const vramMib of [60, 50]) b.submit({ vramMib })
    const { primary, secondary } = waitOf(b, { vramMib: 50 })
    expect([primary, ...secondary].map(brief)).toEqual(['WAITING_VRAM 40/50 on n1', 'QUEUED_BEHIND -/- on '])
  })

  it('is placed in the next scheduling cycle', () => {
    const b = cluster()
    const task = b.submit({ vramMib: 30 })
    expect(explained(b, task).sentence).toBe(
      'The task fits on GPU 0 of n1 and is considered in the next scheduling cycle.',
    )
    b.cycle()
    expect(task.placement).not.toBeNull()
  })

  it('counts the tasks ahead of it by class, then by submission', () => {
    const b = cluster()
    b.submit({ vramMib: 100, priority: 0 })
    b.cycle()
    const tasks = ([3, 1, 2, 1] as const).map((priority) =>
      b.submit({ vramMib: 50, priority, noswap: priority === 2 ? 1 : 0 }),
    )
    expect(tasks.map((task) => explained(b, task).queuePosition)).toEqual([4, 1, 3, 2])
  })
})

describe('a swapped-out task that wants the GPU', () => {
  /** `away` is swapped out, `holder` resident; at 50 % both are placed on the only GPU. */
  function swappedOut(holderMib = 90, awayMib = 40): { b: ClusterBuilder; away: LiveTask; holder: LiveTask } {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    const away = b.submit({ vramMib: awayMib, name: 'away' })
    b.settle()
    b.advance(IDLE_MS)
    const holder = b.submit({ vramMib: holderMib, name: 'holder' })
    b.settle()
    expect(placementOf(away).residency).toBe('swapped_out')
    return { b, away, holder }
  }

  it('does not wait while it does not want the GPU', () => {
    const { b, away } = swappedOut()
    expect(b.explain(away)).toBeNull()
  })

  it('waits for a victim', () => {
    const { b, away } = swappedOut()
    b.wants(away, true)
    b.cycle()
    const { primary, secondary, sentence, retryAt, queuePosition } = explained(b, away)
    expect([primary, ...secondary].map(brief)).toEqual(['NO_ELIGIBLE_VICTIM 10/40 on n1'])
    expect(sentence).toBe(
      'Waiting to return to GPU 0 of n1: the task needs 40 MiB, but only 10 MiB is available, including ' +
        'the VRAM of tasks that may be swapped out. The next swap-out is possible in 300 s at the earliest.',
    )
    expect(retryAt).toBe(b.now + IDLE_MS)
    expect(queuePosition).toBeNull()
  })

  it('is next before the next cycle, then waits for the swap-out of its victim', () => {
    const { b, away } = swappedOut()
    b.advance(IDLE_MS)
    b.cycle()
    b.wants(away, true)
    expect(explained(b, away).sentence).toBe('The task returns to GPU 0 of n1 in the next scheduling cycle.')
    b.cycle()
    const { primary, sentence } = explained(b, away)
    expect(brief(primary)).toBe('SWAPPING_OUT_FOR_YOU 10/40 on n1')
    expect(sentence).toBe(
      'The task returns to GPU 0 of n1 once other tasks are swapped out: it needs 40 MiB, and 10 MiB is ' +
        'available.',
    )
  })

  it('waits while its VRAM is reserved for an earlier entry', () => {
    const { b, away } = swappedOut()
    b.configure({ default_vram_overcommit_percent: 200 })
    b.advance(IDLE_MS)
    const third = b.submit({ vramMib: 70, name: 'third' })
    b.cycle()
    expect(third.placementEntry?.hasReserved).toBe(true)
    b.wants(away, true)
    b.cycle()
    const { primary, secondary, sentence } = explained(b, away)
    expect([primary, ...secondary].map(brief)).toEqual(['RESERVED_FOR_ANOTHER 30/40 on n1'])
    expect(sentence).toBe(
      'Waiting to return to GPU 0 of n1: the task needs 40 MiB, but 70 MiB is reserved for an earlier ' +
        'request of third.',
    )
  })

  it('can never return while the foreign memory remains', () => {
    const { b, away } = swappedOut()
    b.wants(away, true)
    b.heartbeat(b.node('n1'), { 0: 70 })
    b.cycle()
    const { primary, sentence } = explained(b, away)
    expect(brief(primary)).toBe('RESIDENCY_IMPOSSIBLE 30/40 on n1')
    expect(sentence).toBe(
      'Waiting to return to GPU 0 of n1: the task needs 40 MiB, but at most 30 MiB is available while ' +
        'noswap tasks and foreign processes use VRAM.',
    )
  })

  it('waits for its node', () => {
    const { b, away } = swappedOut()
    b.wants(away, true)
    b.silence(b.node('n1'))
    const { primary, secondary, sentence } = explained(b, away)
    expect([primary, ...secondary].map(brief)).toEqual([
      'NODES_OFFLINE -/- on n1',
      'NO_ELIGIBLE_VICTIM 10/40 on n1',
    ])
    expect(sentence).toBe('Waiting to return to GPU 0 of n1: the node is offline.')
  })
})

describe('a task that wants to grow', () => {
  it('waits for a victim, with its new demand', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    const [growing] = [50, 40].map((vramMib) => b.submit({ vramMib }))
    b.settle()
    b.wantsToGrow(growing as LiveTask, 70)
    b.cycle()
    const { primary, sentence } = explained(b, growing as LiveTask)
    expect(brief(primary)).toBe('NO_ELIGIBLE_VICTIM 60/70 on n1')
    expect(sentence).toContain(
      'Waiting for more VRAM on GPU 0 of n1: the task needs 70 MiB, but only 60 MiB is available',
    )
  })

  it('waits for physical VRAM when it is noswap', () => {
    const b = cluster({ default_vram_overcommit_percent: 50 })
    const growing = b.submit({ vramMib: 50, noswap: 1 })
    for (const vramMib of [25, 20]) b.submit({ vramMib })
    b.settle()
    b.wantsToGrow(growing, 60)
    b.cycle()
    const { primary, secondary } = explained(b, growing)
    expect([primary, ...secondary].map(brief)).toEqual([
      'WAITING_PHYSICAL_VRAM 55/60 on n1',
      'NO_ELIGIBLE_VICTIM 55/60 on n1',
    ])
  })
})

it('The order of reasons contains every reason once', () => {
  expect(new Set(WAIT_REASONS).size).toBe(WAIT_REASONS.length)
})
