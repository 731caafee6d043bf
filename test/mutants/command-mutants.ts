/** Mutants: each removes one of the rules R8 to R12 of the protocol. */
import { edit, type Mutant } from './mutant.ts'

const SERVER = 'gpu-server/core'
const ENGINE = 'controller/engine'
const WIRE = 'controller/wire'

const LINKS = ['partition', 'drop', 'hold', 'delay', 'reorder', 'restart_broker']

export const COMMAND_MUTANTS: readonly Mutant[] = [
  {
    name: 'r8-any-attempt-completes',
    rule: 'R8',
    says: 'the end of an earlier attempt ends the current one',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-events.ts`,
        'currentPlacement',
        'placement !== null && placement.attempt === attempt && placement.node.id === nodeId ? ' +
          'placement : null',
        'placement !== null && placement.attempt >= attempt && nodeId !== null ? placement : null',
      ),
    ],
    likes: LINKS,
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r9-idle-leader-never-renews',
    rule: 'R9',
    says: 'an idle controller does not write its epoch, and never learns that it was replaced',
    edits: [edit(`${WIRE}/liveness-timer.ts`, 'LivenessTimer.#look', '    this.#engine.renewEpoch()\n', '')],
    likes: ['second_controller'],
    directed: { test: 'test/unit/leader.test.ts' },
  },
  {
    name: 'r9-answers-on-an-old-epoch',
    rule: 'R9',
    says: 'a controller answers although it has not renewed its epoch',
    edits: [
      edit(
        `${ENGINE}/engine.ts`,
        'Engine.#mayBeReplaced',
        '    return this.#now() - this.#renewedAt > this.#lease.leadsForMs\n',
        '    return this.#now() < 0 * this.#lease.leadsForMs\n',
      ),
    ],
    likes: ['second_controller'],
    directed: { test: 'test/unit/leader.test.ts' },
  },
  {
    name: 'r9-epoch-counts-from-its-end',
    rule: 'R9',
    says: 'a slow commit counts from the time when it was known to be durable',
    edits: [
      edit(
        `${ENGINE}/engine.ts`,
        'Engine.#complete',
        '    if (transaction.hasRecords()) this.#renewedAt = this.#committedAt\n',
        '    if (transaction.hasRecords()) this.#renewedAt = this.#now()\n',
      ),
    ],
    likes: ['second_controller'],
    directed: { test: 'test/unit/leader.test.ts' },
  },
  {
    name: 'r9-writes-before-its-epoch',
    rule: 'R9',
    says: 'a starting controller writes decisions before its epoch is durable',
    edits: [
      edit(
        `${ENGINE}/engine.ts`,
        'Engine.#take',
        '    this.#committing = transaction\n    const begun',
        '    const begun',
      ),
    ],
    likes: ['second_controller', 'slow_disk'],
    directed: { scenario: 'regressions/epoch-before-all' },
  },
  {
    name: 'r10-goes-on-after-a-failed-commit',
    rule: 'R10',
    says: 'a controller whose commit has failed still acknowledges',
    edits: [
      edit(
        `${ENGINE}/engine.ts`,
        'Engine.#await',
        "(fault: unknown) => this.#inputTap.storeAnswered({ k: 'failed', n, message: " +
          'errorText(fault) }, () => this.#fail(transaction, fault))',
        '() => this.#committed(transaction)',
      ),
    ],
    likes: ['fsync_error', 'disk_full', 'second_controller'],
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r11-no-bound-in-flight',
    rule: 'R11',
    says: 'more than 32 commands to one node are in flight',
    edits: [
      edit(
        `${WIRE}/outbound.ts`,
        'Outbound.#join',
        'if (line.inFlight < MAX_IN_FLIGHT_PER_NODE && line.waiting.length === 0 &&',
        'if (line.waiting.length === 0 &&',
      ),
      edit(
        `${WIRE}/outbound.ts`,
        'Outbound.#serve',
        'while (line.inFlight < MAX_IN_FLIGHT_PER_NODE && line.taken',
        'while (line.taken',
      ),
    ],
    likes: ['crowd'],
    directed: { test: 'test/unit/liveness-order.test.ts' },
  },
  {
    name: 'r11-two-commands-of-one-task',
    rule: 'R11',
    says: 'two commands of one task are in flight at once',
    edits: [
      edit(
        `${WIRE}/outbound.ts`,
        'Outbound.send',
        '    if (behind !== undefined) behind.push(effect)\n    else {',
        '    if (behind === null) return\n    else {',
      ),
    ],
    likes: LINKS,
    directed: { test: 'test/unit/last-word-of-a-node.test.ts' },
  },
  {
    name: 'r11-no-bound-on-pending',
    rule: 'R11',
    says: 'the number of pending tasks is unlimited',
    edits: [
      edit(
        `${ENGINE}/inputs/commands/task-commands.ts`,
        'submitTask',
        '  if (c.pendingCount >= MAX_PENDING_TASKS)\n',
        '  if (c.pendingCount < 0)\n',
      ),
    ],
    directed: { test: 'test/unit/last-word-of-a-node.test.ts' },
  },
  {
    name: 'r11-hellos-without-jitter',
    rule: 'R11',
    says: 'servers repeat messages at the same instants',
    edits: [
      edit(
        `${SERVER}/retry.ts`,
        'jittered',
        '  return Math.floor(ms * (0.8 + 0.4 * random()))\n',
        '  return ms + 0 * random()\n',
      ),
    ],
    directed: { test: 'test/unit/server-core-messages.test.ts' },
  },
  {
    name: 'r12-noswap-leaves-when-told',
    rule: 'R12',
    says: 'a server swaps out a noswap task',
    edits: [
      edit(`${SERVER}/swaps.ts`, 'refusalToLeave', "  if (attempt.noswap === 1) return 'noswap'\n", ''),
    ],
    directed: { test: 'test/unit/server-core-swaps.test.ts' },
  },
  {
    name: 'r12-busy-leaves-when-told',
    rule: 'R12',
    says: 'a server swaps out a task that wants the GPU',
    edits: [
      edit(
        `${SERVER}/swaps.ts`,
        'refusalToLeave',
        "  return attempt.wantsGpu && !command.force_active ? 'wants_gpu' : null\n",
        '  return command === null ? null : null\n',
      ),
    ],
    likes: ['delay', 'reorder', 'drop', 'hold'],
  },
  {
    name: 'r12-stale-swap-obeyed',
    rule: 'R12',
    says: 'a server executes a swap that was decided on an earlier state of the task',
    edits: [
      edit(
        `${SERVER}/swaps.ts`,
        'refusalOf',
        "  if (command.generation !== attempt.generation) return 'stale_generation'\n",
        '',
      ),
    ],
    likes: ['delay', 'reorder', 'duplicate', 'hold'],
    directed: { test: 'test/unit/server-core-swaps.test.ts' },
  },
  {
    name: 'r12-contrary-swap-obeyed',
    rule: 'R12',
    says: 'a server swaps out a task that is not resident, or swaps in one that is not swapped out',
    edits: [
      edit(
        `${SERVER}/swaps.ts`,
        'refusalOf',
        "  if (attempt.residency !== from || isEnding(command, attempt)) return 'contrary'\n",
        '  void from\n',
      ),
    ],
    likes: ['delay', 'reorder', 'duplicate', 'hold'],
    directed: { test: 'test/unit/server-core-swaps.test.ts' },
  },
  {
    name: 'r12-swap-in-without-room',
    rule: 'R12',
    says: 'a server swaps in a task that leaves too little for the reserve',
    edits: [
      edit(
        `${SERVER}/swaps.ts`,
        'Swaps.swapIn',
        "    if (!ledger.fits(attempt.gpus, backMib)) return 'no_vram'\n",
        '',
      ),
    ],
    likes: LINKS,
    directed: { test: 'test/unit/server-core-swaps.test.ts' },
  },
  {
    name: 'r12-growth-without-room',
    rule: 'R12',
    says: 'a server lets a task grow into the reserve',
    edits: [
      edit(
        `${SERVER}/growths.ts`,
        'Growths.grant',
        "      if (growsNow(attempt) && !ledger.fits(attempt.gpus, byMib)) return 'no_vram'\n",
        '',
      ),
    ],
    likes: ['growth'],
    directed: { test: 'test/unit/server-core-swaps.test.ts' },
  },
]
