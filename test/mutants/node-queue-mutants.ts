/** Mutants: each removes one rule of the node queue or of eager returns (semantics 5, "Return"). */
import { edit, type Mutant } from './mutant.ts'

const ENGINE = 'controller/engine'

/** One queue per node. */
const QUEUE: readonly Mutant[] = [
  {
    name: 's-pending-behind-returns',
    rule: 'return',
    says: 'a pending task has no turn in the queue of a node: every covered return goes first',
    edits: [
      edit(
        `${ENGINE}/apply/vram/node-queue.ts`,
        'serve',
        'if (isCovered && !entry.hasReserved && placeAhead(',
        'if (isCovered && entry.task === null && placeAhead(',
      ),
    ],
    likes: ['priorities'],
    directed: { test: 'test/unit/one-queue-per-node.test.ts' },
  },
  {
    name: 's-reservation-of-a-served-entry',
    rule: 'return',
    says: 'an entry that got its VRAM in this turn still reserves its GPU against pending tasks',
    edits: [
      edit(
        `${ENGINE}/apply/vram/queued-placements.ts`,
        'placeAhead',
        '  updateEntryReservations(c, entry.node, now)\n',
        '',
      ),
    ],
    directed: { scenario: 'regressions/reservation-in-one-turn' },
  },
  {
    name: 's-growth-of-a-task-that-is-out',
    rule: 'return',
    says: 'a growth stays in the queue when a server reports that its task is swapped out',
    edits: [
      edit(
        `${ENGINE}/apply/lifecycle/transitions.ts`,
        'setResidency',
        'if (placement.entry !== null) dropEntry',
        "if (placement.entry !== null && to !== 'swapped_out') dropEntry",
      ),
    ],
    directed: { test: 'test/unit/growth-reported-out.test.ts' },
  },
  {
    name: 's-surplus-of-a-placement',
    rule: 'return',
    says: 'what victims of a pending task free beyond its need goes to the next pending task',
    edits: [
      edit(
        `${ENGINE}/cycle.ts`,
        'placePending',
        "    if (placed === 'freed' && (plan.node as LiveNode).queue.some(isWaiting)) return 'freed'\n",
        '',
      ),
    ],
    directed: { scenario: 'regressions/surplus-of-a-placement' },
  },
  {
    name: 's-pending-before-returns',
    rule: 'return',
    says: 'every pending task that fits on a node goes before its returns',
    edits: [
      edit(
        'controller/policy/node-queue.ts',
        'comesBefore',
        '  return byReturnOrder(returnOrderKeyOf(task), entry, policy, now) < 0\n',
        '  return byReturnOrder(returnOrderKeyOf(task), entry, policy, now) < Infinity\n',
      ),
    ],
    directed: { test: 'test/unit/one-queue-per-node.test.ts' },
  },
  {
    name: 's-collector-stays-for-pending-p0',
    rule: 'return',
    says: 'a collector keeps VRAM that a pending P0 task needs',
    edits: [
      edit(
        `${ENGINE}/apply/vram/node-queue.ts`,
        'serveNode',
        '  preemptCollectorForPending(c, node, now)\n',
        '',
      ),
    ],
    directed: { test: 'test/unit/one-queue-per-node.test.ts' },
  },
  {
    name: 's-collector-lets-go-for-any-p0',
    rule: 'return',
    says: 'a collector releases VRAM for a pending P0 task that fits on another node',
    edits: [
      edit(
        `${ENGINE}/apply/vram/collector.ts`,
        'preemptCollectorForPending',
        'if (needing === null || fitsSomewhere(c, needing, now) ||',
        'if (needing === null ||',
      ),
    ],
    directed: { test: 'test/unit/one-queue-per-node.test.ts' },
  },
]

/** Eager returns. */
const EAGER: readonly Mutant[] = [
  {
    name: 's-no-eager-return',
    rule: 'return',
    says: 'a task without a swap-in request stays swapped out on an empty GPU',
    edits: [
      edit(
        `${ENGINE}/apply/vram/eager-returns.ts`,
        'returnEagerly',
        '  if (c.eagerChecks.isEmpty) return\n',
        '  if (c.eagerChecks.take().length >= 0) return\n',
      ),
    ],
  },
  {
    name: 's-eager-at-once',
    rule: 'return',
    says: 'a task returns eagerly however short it has been swapped out',
    edits: [
      edit(
        `${ENGINE}/apply/vram/eager-returns.ts`,
        'checkNode',
        '(placement.swappedOutSince ?? now) + eagerSwapInMs',
        'now',
      ),
    ],
  },
  {
    name: 's-eager-beside-the-queue',
    rule: 'return',
    says: 'a task returns eagerly to GPUs on which an entry of the queue waits',
    edits: [
      edit(
        'controller/policy/eager-return.ts',
        'hasRoomToReturn',
        '  if (node.queue.some((entry) => entry.gpus.some((gpu) => gpus.includes(gpu)))) return false\n',
        '  void node\n',
      ),
    ],
    directed: { test: 'test/unit/eager-return.test.ts' },
  },
  {
    name: 's-eager-beside-pending',
    rule: 'return',
    says: 'a task returns eagerly to a GPU for whose VRAM a pending task waits',
    edits: [
      edit(
        `${ENGINE}/apply/vram/eager-returns.ts`,
        'waitingFor',
        '  if (c.pendingCount === 0) return null\n',
        '  if (c.pendingCount >= 0) return null\n',
      ),
    ],
    directed: { test: 'test/unit/eager-return.test.ts' },
  },
  {
    name: 's-eager-fills-up',
    rule: 'return',
    says: 'an eager return leaves no free VRAM on a GPU with resident tasks',
    edits: [
      edit(
        'controller/policy/eager-return.ts',
        'leastLeftMib',
        'return Math.max(LEAST_LEFT_MIB, Math.floor(physicalMib / 10))',
        'return 0 * physicalMib',
      ),
    ],
    directed: { test: 'test/unit/eager-return.test.ts' },
  },
  {
    name: 's-eager-against-an-operator',
    rule: 'return',
    says: 'a task that an operator swapped out returns eagerly',
    edits: [
      edit(
        'controller/policy/eager-return.ts',
        'absentAmong',
        ' || isSwappedOutByOperator || isOver',
        ' || isOver',
      ),
    ],
    likes: ['hands'],
    directed: { test: 'test/unit/eager-return.test.ts' },
  },
  {
    name: 's-eager-to-closed-nodes',
    rule: 'return',
    says: 'a task returns eagerly to a cordoned node',
    edits: [
      edit(
        'controller/policy/eager-return.ts',
        'mayReturnOn',
        "return status === 'up' && !isCordoned && autoCordon === null && drain === null",
        "return status === 'up'",
      ),
    ],
    likes: ['closing'],
    directed: { test: 'test/unit/eager-return.test.ts' },
  },
  {
    name: 's-eager-last-out-first',
    rule: 'return',
    says: 'the task that was swapped out last returns eagerly first',
    edits: [
      edit(
        'controller/policy/eager-return.ts',
        'absentAmong',
        '(a.swappedOutSince ?? 0) - (b.swappedOutSince ?? 0)',
        '(b.swappedOutSince ?? 0) - (a.swappedOutSince ?? 0)',
      ),
    ],
    directed: { test: 'test/unit/eager-return.test.ts' },
  },
  {
    name: 's-eager-all-at-once',
    rule: 'return',
    says: 'several tasks return eagerly to a GPU at the same time',
    edits: [
      edit(
        'controller/policy/eager-return.ts',
        'hasRoomToReturn',
        'gpu.freeMib < needMib || isMoving(gpu)',
        'gpu.freeMib < needMib',
      ),
    ],
    directed: { test: 'test/unit/eager-return.test.ts' },
  },
  {
    name: 's-eager-resets-the-idle-clock',
    rule: 'return',
    says: 'a task that has returned eagerly is idle from its return',
    edits: [
      edit(
        `${ENGINE}/apply/lifecycle/transitions.ts`,
        'setResidency',
        '    if (!placement.isEager) placement.idleSince = placement.idleFrom = now\n',
        '    placement.idleSince = placement.idleFrom = now\n',
      ),
    ],
    directed: { test: 'test/unit/eager-return.test.ts' },
  },
]

export const NODE_QUEUE_MUTANTS: readonly Mutant[] = [...QUEUE, ...EAGER]
