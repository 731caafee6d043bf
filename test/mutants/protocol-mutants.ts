/** Mutants: each removes one of the rules R1 to R7 of the protocol. */
import { edit, type Mutant } from './mutant.ts'

const SERVER = 'gpu-server/core'
const ENGINE = 'controller/engine'
const WIRE = 'controller/wire'

const CRASHES = ['crash_controller', 'restart_controller', 'slow_disk', 'fsync_error']
const LINKS = ['partition', 'drop', 'hold', 'delay', 'reorder', 'restart_broker']

export const PROTOCOL_MUTANTS: readonly Mutant[] = [
  {
    name: 'r1-told-before-durable',
    rule: 'R1',
    says: 'the controller publishes, answers and sends before the commit is durable',
    edits: [
      edit(
        `${ENGINE}/engine.ts`,
        'Engine.#await',
        `    committed.then(
      () => this.#inputTap.storeAnswered({ k: 'durable', n }, () => this.#committed(transaction)),`,
        `    this.#complete(transaction)
    committed.then(
      () => this.#inputTap.storeAnswered({ k: 'durable', n }, () => this.#committed(new Transaction())),`,
      ),
    ],
    likes: CRASHES,
    directed: { test: 'test/property/faults.test.ts' },
  },
  {
    name: 'r2-same-attempt',
    rule: 'R2',
    says: 'an assignment does not increment the attempt',
    edits: [
      edit(
        `${ENGINE}/apply/lifecycle/transitions.ts`,
        'assign',
        '  task.attempt += 1\n',
        '  task.attempt = Math.max(1, task.attempt)\n',
      ),
    ],
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r2-any-epoch-writes',
    rule: 'R2',
    says: 'the store accepts batches of an earlier epoch',
    edits: [
      edit(
        'controller/adapters/memory-store.ts',
        'commit',
        'if (batch.marks.epoch < held.marks.epoch)',
        'if (false as boolean)',
      ),
    ],
    likes: ['second_controller'],
    directed: { test: 'test/contract/store.test.ts' },
  },
  {
    name: 'r5-given-up-without-a-broker',
    rule: 'R5',
    says: 'a controller that lost its own connection to the broker gives nodes up',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/liveness.ts`,
        'updateLiveness',
        '  if (c.broker.isAway) return isChanged\n',
        '',
      ),
    ],
    likes: ['restart_broker'],
    directed: { test: 'test/unit/broker-absence.test.ts' },
  },
  {
    name: 'r3-stale-epoch-obeyed',
    rule: 'R3',
    says: 'a server obeys a controller that has been replaced',
    edits: [
      edit(
        `${SERVER}/durable-state.ts`,
        'DurableState.isOfOtherController',
        '    if (epoch !== this.#highestEpoch) return epoch < this.#highestEpoch\n',
        '    if (epoch !== this.#highestEpoch) return false\n',
      ),
    ],
    likes: ['second_controller', 'delay', 'hold', 'reorder'],
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r5-answer-to-an-earlier-mark',
    rule: 'R5',
    says: 'a server takes the mark of a new controller that has judged an earlier mark of it',
    edits: [
      edit(
        `${SERVER}/durable-state.ts`,
        'DurableState.acceptsAnswer',
        '    return this.isJudged(asked, answer) && this.accepts(answer)\n',
        '    return this.accepts(answer)\n',
      ),
    ],
    likes: ['store_set_back', 'hold', 'restart_broker'],
    directed: { test: 'test/unit/server-core-messages.test.ts' },
  },
  {
    name: 'r5-command-before-an-answer',
    rule: 'R5',
    says: 'a server obeys a new controller that has not judged its mark',
    edits: [
      edit(
        `${SERVER}/server-core.ts`,
        'ServerCore.#isUnjudged',
        '    return !durable.isObeyed(message) && !durable.isOfOtherController(message)\n',
        '    return false\n',
      ),
    ],
    likes: ['store_set_back', 'hold', 'restart_broker'],
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r3-other-boot-obeyed',
    rule: 'R3',
    says: 'a server obeys a command for an earlier boot',
    edits: [
      edit(
        `${SERVER}/commands.ts`,
        'Commands.#refusalOf',
        '    if (command.node_boot.counter !== boot.counter || command.node_boot.random !== ' +
          "boot.random) return 'other_boot'\n",
        '',
      ),
    ],
    likes: ['crash', 'bounce', 'node_disk_lost'],
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r3-late-command-obeyed',
    rule: 'R3',
    says: 'a server executes an expired command',
    edits: [
      edit(
        `${SERVER}/commands.ts`,
        'Commands.#refusalOf',
        "    if (envelopes.mono() > command.valid_until_mono) return 'expired'\n",
        '',
      ),
    ],
    likes: ['delay', 'hold', 'reorder'],
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r3-start-without-lease',
    rule: 'R3',
    says: 'a server starts a task without a run lease',
    edits: [
      edit(
        `${SERVER}/commands.ts`,
        'Commands.#refusalToStart',
        "    if (!lease.holds(envelopes.mono())) return 'no_lease'\n",
        '',
      ),
    ],
    likes: LINKS,
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r3-old-attempt-starts',
    rule: 'R3',
    says: 'a known attempt starts again',
    edits: [
      edit(
        `${SERVER}/commands.ts`,
        'Commands.#start',
        '    const { clock, durable } = this.#parts\n' +
          '    if (command.attempt <= durable.seen.highest(command.task_id)) return ' +
          'this.#whatIsKnown(command)\n',
        '    const { clock, durable } = this.#parts\n',
      ),
    ],
    likes: ['duplicate', 'delay', 'drop'],
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r3-start-without-room',
    rule: 'R3',
    says: 'a server starts a task that leaves too little for the reserve',
    edits: [
      edit(
        `${SERVER}/commands.ts`,
        'Commands.#refusalToStart',
        "    if (!ledger.fits(gpus, vram_mib)) return 'no_vram'\n",
        '',
      ),
    ],
    likes: LINKS,
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r3-refusal-burns-nothing',
    rule: 'R3',
    says: 'a refused attempt may start later',
    edits: [
      edit(
        `${SERVER}/commands.ts`,
        'Commands.#burn',
        '    const isDurable = this.#parts.durable.burn(command.task_id, command.attempt)\n' +
          '    if (!isDurable)',
        '    const isDurable = true\n    if (!isDurable)',
      ),
    ],
    likes: ['duplicate', 'delay', 'reorder'],
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r3-never-seen-burns-nothing',
    rule: 'R3',
    says: 'an attempt that was answered never_seen may start later',
    edits: [
      edit(
        `${SERVER}/commands.ts`,
        'Commands.#whatIsKnown',
        'isBurned ? durable.persist() : durable.burn(task_id, attempt)',
        'durable.persist()',
      ),
    ],
    likes: ['delay', 'reorder', 'hold'],
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r3-refusing-node-asked-again',
    rule: 'R3',
    says: 'a node that refused a task is a candidate for it at once',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-events.ts`,
        'applyRefusal',
        '    noteRefusal(c, task, node.id, Math.max(seq, node.snapshotSeq))\n',
        '    void seq\n',
      ),
    ],
    likes: LINKS,
  },
  {
    name: 'r4-lease-end-suspends-no-task',
    rule: 'R4',
    says: 'nothing is suspended or ended at the end of the run lease',
    edits: [
      edit(
        `${SERVER}/lease-enforcer.ts`,
        'LeaseEnforcer.renewed',
        'if (!lease.isElided) device.lease(envelopes.instantOf(lease.untilMono), lengthMs)',
        'void device',
      ),
      edit(
        `${SERVER}/lease-enforcer.ts`,
        'LeaseEnforcer.renewed',
        '    this.#plan(lengthMs)\n',
        '    void lengthMs\n',
      ),
    ],
    likes: LINKS,
    directed: { test: 'test/unit/server-core-lease.test.ts' },
  },
  {
    name: 'r4-lease-end-ends-no-task',
    rule: 'R4',
    says: 'tasks suspended at the end of a lease are not ended after another lease',
    edits: [
      edit(
        `${SERVER}/lease-enforcer.ts`,
        'LeaseEnforcer.#plan',
        '      this.#cancel = clock.at(endsAt + lengthMs, end, RANK_MESSAGE)\n',
        '      void end\n',
      ),
      edit(
        'simulator/fleet/simulated-device.ts',
        'SimulatedDevice.lease',
        '      this.#cancelLease = this.#leaseClock.at(until + lengthMs, end, RANK_DEVICE)\n',
        '      void [end, lengthMs]\n',
      ),
    ],
    directed: { test: 'test/unit/server-core-lease.test.ts' },
  },
  {
    name: 'r4-unconfirmed-start-runs-on',
    rule: 'R4',
    says: 'a task whose start is not acknowledged survives the lease if its policy is wait',
    edits: [
      edit(
        `${SERVER}/lease-enforcer.ts`,
        'LeaseEnforcer.#tasksWithoutGrace',
        "attempt.onNodeLoss !== 'wait' || !attempt.isStartAcknowledged",
        "attempt.onNodeLoss !== 'wait'",
      ),
      edit(
        'simulator/fleet/simulated-process.ts',
        'newSimulatedProcess',
        '    isLeased: true,\n',
        "    isLeased: start.onNodeLoss !== 'wait',\n",
      ),
    ],
    likes: LINKS,
    directed: { test: 'test/unit/server-core-lease.test.ts' },
  },
  {
    name: 'r4-no-attempt-adopted',
    rule: 'R4',
    says: 'a restarted server does not know the tasks that live on under their guards',
    edits: [
      edit(
        `${SERVER}/server-core.ts`,
        'ServerCore.constructor',
        '    adopt(this.#parts, this.#growths)\n',
        '    void adopt\n',
      ),
    ],
    likes: ['bounce'],
    directed: { test: 'test/unit/server-core-adoption.test.ts' },
  },
  {
    name: 'r4-lease-from-receipt',
    rule: 'R4',
    says: 'a run lease counts from when the answer arrived',
    edits: [
      edit(
        `${SERVER}/lease-enforcer.ts`,
        'LeaseEnforcer.renewed',
        'if (!lease.grant(sentMono, lengthMs)) return false',
        'if (!lease.grant(Math.max(sentMono, envelopes.mono()), lengthMs)) return false',
      ),
    ],
    likes: ['delay', 'reorder', 'hold'],
    directed: { test: 'test/unit/server-core-lease.test.ts' },
  },
  {
    name: 'r5-requeued-at-once',
    rule: 'R5',
    says: 'a silent node is given up before its lease has ended',
    edits: [
      edit(
        'controller/state/node-contact.ts',
        'windowMs',
        '  return Math.ceil((leases * leaseMs * 105) / 100) + LEASE_MARGIN_MS\n',
        '  return 0 * leases * leaseMs\n',
      ),
    ],
    likes: LINKS,
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r5-no-new-window-after-start',
    rule: 'R5',
    says: 'a starting controller gives its nodes no new window',
    edits: [
      edit(
        'controller/state/node-contact.ts',
        'newNodeContact',
        '  grantLease(contact, leaseMs, now)\n  contact.longLeaseEndsAt',
        '  contact.longLeaseEndsAt',
      ),
    ],
    likes: CRASHES,
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r5-unconfirmed-start-given-up-early',
    rule: 'R5',
    says: 'an unconfirmed start is pending again after one lease instead of two',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/liveness.ts`,
        'settleUnconfirmed',
        ': node.contact.processesEndAt) || c.freeze',
        ': node.contact.leaseEndsAt) || c.freeze',
      ),
    ],
    likes: LINKS,
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r5-long-leases-forgotten',
    rule: 'R5',
    says: 'an earlier, longer lease is not awaited',
    edits: [
      edit(
        `${ENGINE}/inputs/commands/cluster-commands.ts`,
        'keepLongLeases',
        '    node.contact.longLeaseEndsAt = node.contact.leaseEndsAt\n    c.eventLog',
        '    node.contact.leaseEndsAt = 0\n    c.eventLog',
      ),
    ],
    likes: ['settings'],
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r5-operator-requeue-without-stop',
    rule: 'R5',
    says: "an operator's requeue does not wait for the node's stop answer",
    edits: [
      edit(
        `${ENGINE}/inputs/commands/task-commands.ts`,
        'requeueTask',
        '  if (!confirmFenced) orderStop(c, placement, { ...pendingAgain, graceMs: stopGraceOf(task, ' +
          'c.policy) }, now)\n',
        '  if (!confirmFenced) returnToPending(c, placement, `requeued by ${by}`, now)\n',
      ),
    ],
    likes: ['requeues'],
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r5-no-brake-on-mass-silence',
    rule: 'R5',
    says: 'many nodes that fall silent together are still requeued',
    edits: [edit('controller/policy/freeze.ts', 'judgeSilence', 'nodes >= MIN_NODES && ', 'nodes < 0 && ')],
    likes: ['partition', 'restart_broker'],
    directed: { scenario: 'cut-off-from-all' },
  },
  {
    name: 'r5-brake-lifts-for-all',
    rule: 'R5',
    says: 'when enough nodes are back, the others are requeued at once',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/requeue-freeze.ts`,
        'updateFreeze',
        '  if (!isFrozen) awaitOthers(c, released, now)\n',
        '  void awaitOthers\n',
      ),
    ],
    likes: ['partition', 'restart_broker'],
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r6-stale-snapshot-counts',
    rule: 'R6',
    says: 'a snapshot that was overtaken counts',
    edits: [
      edit(
        `${WIRE}/inbound.ts`,
        'receive',
        'else if (message.seq > node.snapshotSeq)',
        'else if (message.seq > 0)',
      ),
      edit(
        `${WIRE}/inbound.ts`,
        'receiveHello',
        "  if (node !== undefined && standing === 'known' && seq <= node.snapshotSeq) return o.onLate()\n",
        '',
      ),
    ],
    likes: ['delay', 'reorder', 'duplicate', 'hold'],
    directed: { test: 'test/unit/liveness-order.test.ts' },
  },
  {
    name: 'r6-absent-before-confirmed',
    rule: 'R6',
    says: 'a task counts as absent in a snapshot that is older than its confirmation',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-registry.ts`,
        'isConfirmedBefore',
        '  return confirmed.bootCounter < node.boot.counter || confirmed.seq < node.snapshotSeq\n',
        '  return node.snapshotSeq > 0\n',
      ),
    ],
    likes: ['delay', 'reorder'],
    directed: { test: 'test/unit/liveness-order.test.ts' },
  },
  {
    name: 'r6-unacknowledged-end-is-absence',
    rule: 'R6',
    says: 'an attempt whose end is not acknowledged counts as lost',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-registry.ts`,
        'applySnapshot',
        '    present.add(attemptKey(ref.task_id, ref.attempt))\n    noteOver',
        '    noteOver',
      ),
    ],
    likes: ['drop', 'delay', 'partition'],
    directed: { test: 'test/unit/last-word-of-a-node.test.ts' },
  },
  {
    name: 'r6-absence-ignored',
    rule: 'R6',
    says: 'an attempt that a node no longer has counts as running without end',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-registry.ts`,
        'settleOrDefer',
        '  settleAbsent(c, node, present, lacksHistoryOf(c, node.id), now)\n',
        '  void settleAbsent\n',
      ),
    ],
    likes: ['crash', 'node_disk_lost'],
    directed: { test: 'test/unit/last-word-of-a-node.test.ts' },
  },
  {
    name: 'r6-lower-boot-accepted',
    rule: 'R6',
    says: 'a server that lost its state is taken for the known one',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-registry.ts`,
        'bootOrder',
        "  return boot.counter === node.boot.counter && boot.random === node.boot.random ? 'known' : " +
          "'contradictory'\n",
        "  return 'known'\n",
      ),
    ],
    likes: ['node_disk_lost'],
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r6-nothing-in-doubt-after-reset',
    rule: 'R6',
    says: 'earlier attempts of a reset server count as gone at once',
    edits: [
      edit(`${ENGINE}/inputs/nodes/node-registry.ts`, 'beginBoot', '    placement.isInDoubt = true\n', ''),
    ],
    likes: ['node_disk_lost'],
    directed: { test: 'test/unit/liveness-order.test.ts' },
  },
  {
    name: 'r7-running-duplicate-unknown',
    rule: 'R7',
    says: 'a duplicate start of a running attempt is not recognised',
    edits: [
      edit(
        `${SERVER}/commands.ts`,
        'Commands.#whatIsKnown',
        "    if (tasks.find(task_id, attempt) !== null) return this.#result(command, 'running', null)\n",
        '    void tasks\n',
      ),
    ],
    likes: ['duplicate', 'drop', 'delay'],
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r7-finished-duplicate-unknown',
    rule: 'R7',
    says: 'a duplicate start of an attempt that has ended is answered gone',
    edits: [
      edit(
        `${SERVER}/commands.ts`,
        'Commands.#whatIsKnown',
        '    if (durable.outbox.hasFinished(task_id, attempt)) return this.#result(command, ' +
          "'finished', null)\n",
        '',
      ),
    ],
    likes: ['duplicate', 'drop', 'delay'],
    directed: { test: 'test/unit/server-core-commands.test.ts' },
  },
  {
    name: 'r7-never-seen-ignored',
    rule: 'R7',
    says: 'never_seen has no effect',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-events.ts`,
        'applyNeverSeen',
        "  else returnUnlessSuperseded(c, placement, 'never_seen', now)\n",
        '',
      ),
    ],
    likes: ['delay', 'hold', 'bounce', 'crash'],
    directed: { test: 'test/unit/liveness.test.ts' },
  },
  {
    name: 'r7-gone-ignored',
    rule: 'R7',
    says: 'gone has no effect',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-events.ts`,
        'applyCommandResult',
        "      return endLost(c, placement, 'gone', 'the node no longer has it', now)\n",
        '      return\n',
      ),
    ],
    likes: ['drop', 'crash'],
    directed: { test: 'test/unit/last-word-of-a-node.test.ts' },
  },
  {
    name: 'r7-repeated-swap-is-new',
    rule: 'R7',
    says: 'a repeated swap order is taken for a new one',
    edits: [
      edit(
        `${SERVER}/swaps.ts`,
        'isRepeated',
        '  return lastSwap !== null && lastSwap.op === op && lastSwap.generation === generation\n',
        '  return lastSwap === null && op === null && generation < 0\n',
      ),
    ],
    likes: ['duplicate', 'drop', 'delay'],
    directed: { test: 'test/unit/server-core-swaps.test.ts' },
  },
]
