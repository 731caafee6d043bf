/**
 * Mutants: each removes one rule for a store that went back to an earlier state (safety section 2;
 * docs/decisions/0082, 0083).
 */
import { edit, type Mutant } from './mutant.ts'

const ENGINE = 'controller/engine'
const likes = ['store_set_back']

export const LOST_HISTORY_MUTANTS: readonly Mutant[] = [
  {
    name: 'r5-quarantine-stops',
    rule: 'R5',
    says: 'an attempt that the store has lost is stopped instead of quarantined',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/quarantine.ts`,
        'fateOf',
        `    quarantine(c, node, report, now)
    return 'keeps_running'`,
        `    return 'stop'`,
      ),
    ],
    likes,
    directed: { scenario: 'faults/store-set-back' },
  },
  {
    name: 'r5-store-behind-ignored',
    rule: 'R5',
    says: 'a controller answers a node that is ahead of its store',
    edits: [
      edit(
        'controller/wire/inbound.ts',
        'receive',
        `if (verdict !== 'known' && verdict !== 'accepted_loss') return ` +
          'o.engine.heardAhead(contactOf(body), verdict, message)',
        '',
      ),
    ],
    likes,
    directed: { scenario: 'faults/store-set-back' },
  },
  {
    name: 'r5-most-nodes-ahead-ignored',
    rule: 'R5',
    says: 'a controller continues to place when most nodes are ahead of its store',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/contacts.ts`,
        'weigh',
        '2 * c.aheadCount > c.contacts.size',
        '(false as boolean)',
      ),
    ],
    likes,
    directed: { scenario: 'most-nodes-ahead' },
  },
  {
    name: 'r5-tasks-of-ahead-nodes-placed',
    rule: 'R5',
    says: 'a task that runs on a node ahead of the store is placed elsewhere',
    edits: [
      edit(
        'controller/state/cluster.ts',
        'blockedTasksIn',
        'ahead?.taskIds ?? []',
        'ahead === null ? [] : []',
      ),
    ],
    likes,
    directed: { test: 'test/unit/store-behind.test.ts' },
  },
  {
    name: 'r9-restore-keeps-the-epoch',
    rule: 'R9',
    says: 'a restore, or an accepted loss, does not raise the epoch',
    edits: [
      edit(
        'controller/model/epoch-after-loss.ts',
        'epochAfterLoss',
        'return Math.max(highest + MIN_EPOCHS_AHEAD, wallMs * EPOCHS_PER_MS) + below(EPOCHS_PER_MS)',
        'return Math.min(highest, wallMs + below(1))',
      ),
    ],
    likes,
    directed: { scenario: 'faults/store-restored' },
  },
  {
    name: 'r9-later-restore-below-an-earlier',
    rule: 'R9',
    says: 'a restore ignores the epochs of an earlier restore of the same backup',
    edits: [
      edit(
        'controller/model/epoch-after-loss.ts',
        'epochAfterLoss',
        'Math.max(highest + MIN_EPOCHS_AHEAD, wallMs * EPOCHS_PER_MS)',
        '(highest + Math.min(MIN_EPOCHS_AHEAD, wallMs))',
      ),
    ],
    likes,
    directed: { test: 'test/unit/epoch-history.test.ts' },
  },
  {
    name: 'r5-recovery-without-hello',
    rule: 'R5',
    says: 'a recovery ends although known nodes have not reported',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/recovery-mode.ts`,
        'beginRecovery',
        'awaited: new Set(nodes.map(({ id }) => id))',
        'awaited: new Set(nodes.slice(0, 0).map(({ id }) => id))',
      ),
    ],
    likes,
    directed: { scenario: 'faults/store-restored' },
  },
  {
    name: 'r5-twin-in-quarantine',
    rule: 'R5',
    says: 'a task does not go on with an attempt in quarantine that has the number of the one it gave up',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/quarantine.ts`,
        'supersede',
        '(attempt > task.attempt || (attempt === task.attempt && node !== placement.node))',
        'attempt > task.attempt',
      ),
      edit(
        `${ENGINE}/inputs/nodes/quarantine.ts`,
        'isKnownToBeOver',
        '  if (quarantined !== undefined && task.lastNodeId !== node.id) return false\n',
        '',
      ),
    ],
    likes,
    directed: { scenario: 'regressions/quarantined-twin' },
  },
  {
    name: 'r5-noswap-before-a-report',
    rule: 'R5',
    says: 'a task becomes noswap although its node has not reported that it is swapped out',
    edits: [
      edit(
        `${ENGINE}/inputs/commands/task-commands.ts`,
        'noswapRefusal',
        '  if (isReportAwaited(c, node.id))\n',
        '  if (isReportAwaited(c, node.id) && (false as boolean))\n',
      ),
    ],
    likes,
    directed: { scenario: 'regressions/noswap-before-a-report' },
  },
  {
    name: 'r5-head-reserves-in-a-pause',
    rule: 'R5',
    says: 'the head of a queue becomes a collector, and is placed, while placements are paused',
    edits: [
      edit(
        `${ENGINE}/apply/vram/queued-placements.ts`,
        'placeAhead',
        'if (c.pendingCount === 0 || pauseOf(c) !== null)',
        'if (c.pendingCount === 0)',
      ),
    ],
    likes,
    directed: { scenario: 'regressions/no-reservation-in-recovery' },
  },
  {
    name: 'r5-pending-not-reattached',
    rule: 'R5',
    says: 'a pending task does not adopt the attempt that its node reports',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/quarantine.ts`,
        'fateOf',
        `(isIncomplete || quarantined !== undefined) && task?.state === 'pending'`,
        `(isIncomplete || quarantined !== undefined) && task?.state === 'pending' && (false as boolean)`,
      ),
    ],
    likes,
    directed: { scenario: 'faults/store-set-back' },
  },
  {
    name: 'r5-same-epoch-taken-for-the-same',
    rule: 'R5',
    says: 'an epoch of another process is taken for the stored one',
    edits: [
      edit(
        'controller/state/epoch-history.ts',
        'isOfOther',
        'controller !== undefined && written.controller !== undefined && controller !== written.controller',
        'controller === written.controller && (false as boolean)',
      ),
    ],
    likes,
    directed: { test: 'test/unit/epoch-history.test.ts' },
  },
  {
    name: 'r5-restore-settles-no-earlier-loss',
    rule: 'R5',
    says: 'a restore does not cover an earlier silent loss',
    edits: [
      edit(
        'controller/state/epoch-history.ts',
        'EpochHistory.#isAfterLoss',
        'if (index < place) return false',
        'if (index !== place) return false',
      ),
    ],
    likes,
    directed: { test: 'test/unit/epoch-history.test.ts' },
  },
  {
    name: 'r5-claimed-epoch-accepts-a-loss',
    rule: 'R5',
    says: 'an epoch that was claimed and never recorded counts as an accepted loss',
    edits: [
      edit(
        'controller/state/epoch-history.ts',
        'EpochHistory.#isAfterLoss',
        'epoch - before.epoch >= MIN_EPOCHS_AHEAD',
        'before.epoch < epoch - 1',
      ),
    ],
    likes: ['two_controllers'],
    directed: { scenario: 'regressions/epoch-claimed-after-a-loss' },
  },
  {
    name: 'r1-epoch-counts-an-event',
    rule: 'R1',
    says: 'the marks of a new epoch count the event of the recovery, which is not durable yet',
    edits: [
      edit(
        `${ENGINE}/engine.ts`,
        'Engine.#take',
        'const committed = this.#store(transaction)',
        'if (state.recovery !== null) this.cluster.eventLog.nextEventSeq += 1\n' +
          '    const committed = this.#store(transaction)',
      ),
    ],
    likes,
    directed: { test: 'test/unit/recovery-mode.test.ts' },
  },
  {
    name: 'r5-result-unknown-requeued',
    rule: 'R5',
    says: 'after a loss a task that its node no longer has follows its policy',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-registry.ts`,
        'settleAbsent',
        'if (isAfterLoss && mayHaveLaterAttempt)',
        'if (isAfterLoss && (false as boolean))',
      ),
    ],
    likes,
    directed: { scenario: 'faults/store-restored' },
  },
]
