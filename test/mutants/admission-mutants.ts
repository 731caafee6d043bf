/** Mutants: each removes one rule of admission or of the pending queue (semantics 1 and 4). */
import { edit, type Mutant } from './mutant.ts'

const SCHEDULER = 'controller/policy/placement'
const SWAP = 'controller/policy/swap'
const ENGINE = 'controller/engine'

const ADMISSION: readonly Mutant[] = [
  {
    name: 'a-no-commit-limit',
    rule: 'admission',
    says: 'N + S + d may exceed L',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'commitRoomMib',
        '  return gpu.limitMib - gpu.noswapMib - gpu.swappableMib\n',
        '  return gpu.physicalMib + 0 * gpu.noswapMib\n',
      ),
    ],
  },
  {
    name: 'a-limit-at-zero-percent',
    rule: 'admission',
    says: 'with overcommit off the reserve may be committed',
    edits: [
      edit(
        'controller/model/vram.ts',
        'commitLimitMib',
        '  return overcommitPercent === 0 ? Math.min(effective, capacityMib) : effective\n',
        '  return effective + 0 * capacityMib\n',
      ),
    ],
    likes: ['reserve'],
  },
  {
    name: 'a-node-override-ignored',
    rule: 'admission',
    says: "a node's own percentage is ignored",
    edits: [
      edit(
        'controller/model/vram.ts',
        'resolveOvercommit',
        "  return override === null ? { percent: globalPercent, source: 'global' } : { percent: " +
          "override, source: 'node' }\n",
        "  return { percent: globalPercent, source: override === null ? 'global' : 'node' }\n",
      ),
    ],
    likes: ['node_settings'],
  },
  {
    name: 'a-no-reserve',
    rule: 'admission',
    says: 'the reserve counts as capacity',
    edits: [
      edit(
        'controller/model/vram.ts',
        'residentCapacityMib',
        '  return Math.max(0, physicalMib - reserveMib - foreignMib)\n',
        '  return Math.max(0, physicalMib - 0 * reserveMib - foreignMib)\n',
      ),
    ],
    likes: ['reserve'],
  },
  {
    name: 'a-not-free-now',
    rule: 'admission',
    says: 'a task starts on a GPU without enough free VRAM',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'largestNowMib',
        '  return Math.min(ruleRoomMib(gpu, kind), gpu.freeMib)\n',
        '  return ruleRoomMib(gpu, kind)\n',
      ),
    ],
  },
  {
    name: 'a-noswap-counts-headroom',
    rule: 'admission',
    says: 'a noswap task may be placed in headroom',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'largestNowMib',
        '  return Math.min(ruleRoomMib(gpu, kind), gpu.freeMib)\n',
        "  return Math.min(ruleRoomMib(gpu, kind), kind === 'noswap' ? gpu.physicalMib : gpu.freeMib)\n",
      ),
    ],
    likes: ['noswap'],
  },
  {
    name: 'a-noswap-counts-commit-limit',
    rule: 'admission',
    says: 'the commit limit applies to noswap tasks',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'ruleRoomMib',
        "  if (kind === 'noswap') return Math.min(strandRoomMib(gpu), hostMib)\n",
        "  if (kind === 'noswap') return Math.min(strandRoomMib(gpu), commitRoomMib(gpu), hostMib)\n",
      ),
    ],
    directed: { test: 'test/unit/noswap-admission.test.ts' },
  },
  {
    name: 'a-noswap-displaces-at-zero',
    rule: 'admission',
    says: 'tasks are swapped out to place a noswap task although overcommit is off',
    edits: [
      edit(
        'controller/model/vram.ts',
        'maySwapOutFor',
        '  return noswap === 0 || overcommitPercent > 0\n',
        '  return noswap === 0 || overcommitPercent >= 0\n',
      ),
    ],
    likes: ['noswap'],
    directed: { test: 'test/unit/noswap-admission.test.ts' },
  },
  {
    name: 'a-noswap-takes-reserved-room',
    rule: 'queue',
    says: 'a later noswap task uses the commit room that a reservation lacks',
    edits: [
      edit(
        `${SCHEDULER}/schedule.ts`,
        'keepsCommitRoom',
        "  return by === 'head' && kindOf(task.spec) === 'swappable'\n",
        "  return by === 'head' && kindOf(task.spec) === null\n",
      ),
    ],
    directed: { test: 'test/unit/noswap-admission.test.ts' },
  },
  {
    name: 'a-strands-a-task',
    rule: 'admission',
    says: 'a noswap task may prevent the return of a swappable task',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'strandRoomMib',
        '  return capacityForSwappableMib(gpu) - gpu.largestSwappableMib\n',
        '  return capacityForSwappableMib(gpu)\n',
      ),
    ],
    likes: ['noswap'],
  },
  {
    name: 'a-beside-noswap-ignored',
    rule: 'admission',
    says: 'a swappable task is admitted where noswap tasks leave too little VRAM',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'ruleRoomMib',
        '  return Math.min(commitRoomMib(gpu), capacityForSwappableMib(gpu), hostMib)\n',
        '  return Math.min(commitRoomMib(gpu), hostMib)\n',
      ),
      // VRAM of noswap tasks is not available either, so that one of the two edits alone changes nothing.
      edit(
        `${SCHEDULER}/feasible.ts`,
        'afterMovesMib',
        '  return gpu.capacityMib - gpu.noswapResidentMib - gpu.swappableResidentMib + ' +
          'gpu.movingOutMib - reservedMib\n',
        '  return gpu.capacityMib - gpu.swappableResidentMib + gpu.movingOutMib - reservedMib\n',
      ),
    ],
    likes: ['noswap'],
    directed: { test: 'test/property/feasible.test.ts' },
  },
  {
    name: 'a-no-host-memory-promised',
    rule: 'admission',
    says: 'more is committed than host memory allows to swap',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'hostRoomMib',
        "  if (kind === 'swappable') return Math.max(belowCapacity, left)\n",
        '  if (left > -Infinity) return Infinity\n',
      ),
    ],
    likes: ['little_host_memory'],
  },
  {
    name: 'a-host-memory-of-several-gpus',
    rule: 'admission',
    says: 'the same host memory is promised to each GPU of a task',
    edits: [
      edit(
        `${SCHEDULER}/schedule.ts`,
        'hasHostRoom',
        '  return promised <= node.hostSwapMib || promised === node.hostPromisedMib\n',
        '  return promised < Infinity\n',
      ),
    ],
    likes: ['little_host_memory'],
    directed: { test: 'test/unit/explain.test.ts' },
  },
  {
    name: 'a-no-seats',
    rule: 'admission',
    says: 'max_tasks_per_gpu is ignored',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'hasTaskSlot',
        'gpu.placements.length + gpu.quarantinedCount + gpu.pendingClaimants.length < maxTasksPerGpu',
        'maxTasksPerGpu > 0',
      ),
    ],
    likes: ['few_seats'],
  },
  {
    name: 'a-exclusive-joins-others',
    rule: 'admission',
    says: 'an exclusive task is placed with others',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'largestNowMib',
        "if (kind === 'exclusive') return isEmpty(gpu) ? Math.min(gpu.freeMib, gpu.limitMib) : NOTHING",
        "if (kind === 'exclusive') return Math.min(gpu.freeMib, gpu.limitMib)",
      ),
    ],
    likes: ['exclusive'],
  },
  {
    name: 'a-others-join-exclusive',
    rule: 'admission',
    says: 'others are placed with an exclusive task',
    edits: [edit(`${SCHEDULER}/feasible.ts`, 'hasTaskSlot', ' || gpu.exclusiveTask !== null', '')],
    likes: ['exclusive'],
  },
  {
    name: 'a-cordon-ignored',
    rule: 'admission',
    says: 'a cordoned node accepts tasks',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'isPlaceable',
        "  return node.status === 'up' && !isClosed(node)\n",
        "  return node.status === 'up'\n",
      ),
    ],
    likes: ['closing'],
  },
  {
    name: 'a-silence-ignored',
    rule: 'admission',
    says: 'a node that is not up accepts tasks',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'isPlaceable',
        "  return node.status === 'up' && !isClosed(node)\n",
        '  return !isClosed(node)\n',
      ),
    ],
    likes: ['crash', 'partition'],
  },
  {
    name: 'a-group-node-in-the-pool',
    rule: 'admission',
    says: 'a node of a group accepts tasks of the common pool',
    edits: [
      edit(
        'controller/state/index/membership.ts',
        'belongsTo',
        '  if (poolKey === COMMON_POOL) return groups.length === 0\n',
        '  if (poolKey === COMMON_POOL) return true\n',
      ),
    ],
    likes: ['node_groups'],
  },
  {
    name: 'a-any-group-will-do',
    rule: 'admission',
    says: 'a task that targets groups is placed on a node of another group, or of none',
    edits: [
      edit(
        'controller/state/index/membership.ts',
        'belongsTo',
        "  return poolKey.split('\\n').some((group) => groups.includes(group))\n",
        "  return poolKey.split('\\n').some((group) => groups.includes(group) || groups.length >= 0)\n",
      ),
    ],
    likes: ['target_groups'],
  },
  {
    name: 'a-pending-owner-uncounted',
    rule: 'admission',
    says: 'a pending entry with reserved VRAM does not count in N or S',
    edits: [
      edit(
        'controller/state/gpu-ledger.ts',
        'addPendingClaimant',
        '  gpu.pendingClaimants.splice(place, 0, entry)\n' +
          '  commit(gpu, entry.needMib, entry.task.spec.noswap === 1)\n',
        '  gpu.pendingClaimants.splice(place, 0, entry)\n',
      ),
      edit(
        'controller/state/gpu-ledger.ts',
        'removePendingClaimant',
        '  gpu.pendingClaimants.splice(at, 1)\n' +
          '  uncommit(gpu, entry.needMib, entry.task.spec.noswap === 1)\n',
        '  gpu.pendingClaimants.splice(at, 1)\n',
      ),
    ],
  },
  {
    name: 'a-several-gpus-one-by-one',
    rule: 'admission',
    says: 'a task on several GPUs starts on fewer when not all fit',
    edits: [
      edit(
        `${SCHEDULER}/schedule.ts`,
        'gpusOnNode',
        '  return chosen.length === shape.gpuCount && hasHostRoom',
        '  return chosen.length > 0 && hasHostRoom',
      ),
      // The index offers only nodes with enough GPUs, so that the first edit alone changes nothing.
      edit(
        'controller/state/index/pool-ranking.ts',
        'PoolRanking.#kthLargestMib',
        '    if (members.length < this.#gpuCount) return NOTHING\n',
        '    if (members.length === 0) return NOTHING\n',
      ),
      edit(
        'controller/state/index/pool-ranking.ts',
        'PoolRanking.#kthLargestMib',
        '    return best[this.#gpuCount - 1] as Mib\n',
        '    return best[0] as Mib\n',
      ),
    ],
    likes: ['multi_gpu'],
  },
  {
    name: 'a-too-large-is-feasible',
    rule: 'admission',
    says: 'a task larger than any GPU less its reserve counts as feasible',
    edits: [
      edit(
        `${SCHEDULER}/feasible.ts`,
        'largestEverMib',
        '  return gpu.physicalMib - gpu.reserveMib\n',
        '  return 2 * gpu.physicalMib\n',
      ),
    ],
    directed: { scenario: 'too-large-is-no-head' },
  },
  {
    name: 'a-growth-beside-noswap',
    rule: 'admission',
    says: 'a growth may use VRAM of noswap tasks',
    edits: [
      edit(
        `${SWAP}/resume.ts`,
        'couldEverBeResident',
        '  for (const gpu of entry.gpus) if (held + entry.needMib > attainableMib(gpu, entry)) ' +
          'return false\n',
        '  for (const gpu of entry.gpus) if (held + entry.needMib > gpu.physicalMib + 0 * ' +
          'attainableMib(gpu, entry)) return false\n',
      ),
    ],
    likes: ['growth'],
    directed: { test: 'test/property/swap-engine.test.ts' },
  },
  {
    name: 'a-noswap-growth-waits-for-ever',
    rule: 'admission',
    says: 'the growth of a noswap task is not refused after its wait',
    edits: [
      edit(
        'controller/policy/growth.ts',
        'decideOldGrowth',
        "  if (noswap === 1) return { kind: 'refuse', reason: 'WAITING_PHYSICAL_VRAM' }\n",
        "  if (noswap === 1) return { kind: 'wait' }\n",
      ),
    ],
    likes: ['growth'],
    directed: { test: 'test/property/swap-engine.test.ts' },
  },
  {
    name: 'a-becomes-noswap-unasked',
    rule: 'admission',
    says: 'noswap 0 → 1 needs no admission',
    edits: [
      edit(
        `${ENGINE}/inputs/commands/task-commands.ts`,
        'updateTask',
        '    if (refusal !== null) return conflict(refusal)\n',
        '    void refusal\n',
      ),
    ],
    likes: ['updates'],
    directed: { test: 'test/unit/noswap-admission.test.ts' },
  },
  {
    name: 'a-after-swap-first',
    rule: 'admission',
    says: 'a GPU where the task fits after a swap is preferred to one where it fits now',
    edits: [
      edit(
        `${SCHEDULER}/schedule.ts`,
        'placeFor',
        "  for (const when of ['now', 'after_swap'] as const) {\n    const find",
        "  for (const when of ['after_swap', 'now'] as const) {\n    const find",
      ),
    ],
    directed: { scenario: 'fits-now-first' },
  },
  {
    name: 'a-worst-fit',
    rule: 'admission',
    says: 'best_fit prefers the GPU with the most free VRAM',
    edits: [
      edit(
        `${SCHEDULER}/score.ts`,
        'key1Of',
        "  return strategy === 'spread' ? -gpu.freeMib",
        "  return strategy !== 'spread' ? -gpu.freeMib",
      ),
    ],
    directed: { scenario: 'best-fit-packs' },
  },
]

const QUEUE: readonly Mutant[] = [
  {
    name: 'q-priority-ignored',
    rule: 'queue',
    says: 'the pending queue is ordered only by submission',
    edits: [
      edit(
        `${SCHEDULER}/queue.ts`,
        'queueClass',
        '  if (policy.queueAgingMs === null) return task.spec.priority\n',
        '  if (policy.queueAgingMs === null) return 0\n',
      ),
    ],
    likes: ['priorities'],
  },
  {
    name: 'q-last-come-first',
    rule: 'queue',
    says: 'within a class the latest submission is first',
    edits: [
      edit(
        `${SCHEDULER}/queue.ts`,
        'byQueueOrder',
        'a.task.spec.seq - b.task.spec.seq',
        'b.task.spec.seq - a.task.spec.seq',
      ),
      edit(
        'controller/state/index/pending-queue.ts',
        'PendingQueue.add',
        'task.queueClass, task.spec.seq, -searchDemandMib',
        'task.queueClass, -task.spec.seq, -searchDemandMib',
      ),
    ],
  },
  {
    name: 'q-fifo-overtakes',
    rule: 'queue',
    says: 'under fifo later tasks overtake',
    edits: [
      edit(
        `${SCHEDULER}/schedule.ts`,
        'nextPlacement',
        "view.policy.strategy === 'fifo' ? nextInFifo(view)",
        'view.policy.strategy === null ? nextInFifo(view)',
      ),
    ],
    likes: ['strategy'],
  },
  {
    name: 'q-held-is-placed',
    rule: 'queue',
    says: 'a task on hold is placed',
    edits: [
      edit(
        `${ENGINE}/inputs/commands/holding.ts`,
        'holdTask',
        '  c.dequeue(task)\n  c.waiting.end(task, now)\n',
        '  c.waiting.end(task, now)\n',
      ),
    ],
    likes: ['hands'],
  },
  {
    name: 'q-no-reservation',
    rule: 'queue',
    says: 'a head that has waited long gets no reservation',
    edits: [
      edit(
        `${ENGINE}/apply/vram/reservations.ts`,
        'renewAll',
        '  if (holders !== null) for (const [pool, holder] of holders) renew(c, pool, holder)\n',
        '  void renew\n',
      ),
    ],
    directed: { scenario: 'large-task-not-starved' },
  },
  {
    name: 'q-no-aging',
    rule: 'queue',
    says: 'queue_aging_seconds promotes no task',
    edits: [
      edit(
        `${SCHEDULER}/queue.ts`,
        'queueClass',
        '  return Math.max(0, task.spec.priority - Math.floor((now - task.pendingSince) / ' +
          'policy.queueAgingMs))\n',
        '  return task.spec.priority + 0 * now\n',
      ),
    ],
    likes: ['queue_aging'],
    directed: { scenario: 'aged-task-overtakes' },
  },
]

export const ADMISSION_MUTANTS: readonly Mutant[] = [...ADMISSION, ...QUEUE]
