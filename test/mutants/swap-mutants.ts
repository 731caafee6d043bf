/** Mutants: each removes one rule of the choice of victims or of their return (semantics 5). */
import { edit, type Mutant } from './mutant.ts'

const SWAP = 'controller/policy/swap'
const ENGINE = 'controller/engine'

const VICTIMS: readonly Mutant[] = [
  {
    name: 's-above-request-like-others',
    rule: 'swap',
    says: 'a task that uses more VRAM than it requested does not go first among its equals',
    edits: [edit(`${SWAP}/eligible.ts`, 'eligibleOn', 'isAboveRequest(placement)', 'false')],
    likes: ['growth'],
    directed: { scenario: 'above-its-request-first' },
  },
  {
    name: 's-kept-warm-like-others',
    rule: 'swap',
    says: 'a task that is kept warm leaves as early as the others of its class',
    edits: [
      edit('controller/model/victim-class.ts', 'victimClassOf', "keepWarm === true ? 'non_p0_warm' : ", ''),
    ],
    directed: { scenario: 'fairness/kept-warm' },
  },
  {
    name: 's-noswap-is-a-victim',
    rule: 'swap',
    says: 'a noswap task is eligible',
    edits: [
      edit(
        `${SWAP}/eligible.ts`,
        'eligibleFrom',
        "  if (placement.noswap === 1 || placement.residency !== 'resident') return null\n",
        "  if (placement.residency !== 'resident') return null\n",
      ),
    ],
    likes: ['noswap'],
  },
  {
    name: 's-ended-is-a-victim',
    rule: 'swap',
    says: 'a task that its server has ended is eligible until the event arrives',
    edits: [
      edit(
        `${SWAP}/eligible.ts`,
        'eligibleFrom',
        '  if (placement.isOver || isStopping(placement)) return null\n',
        '  if (isStopping(placement)) return null\n',
      ),
    ],
    likes: ['crash', 'bounce'],
    directed: { test: 'test/unit/explain-victim.test.ts' },
  },
  {
    name: 's-moving-is-a-victim',
    rule: 'swap',
    says: 'a task that is not resident is eligible',
    edits: [
      edit(
        `${SWAP}/eligible.ts`,
        'eligibleFrom',
        "  if (placement.noswap === 1 || placement.residency !== 'resident') return null\n",
        '  if (placement.noswap === 1) return null\n',
      ),
    ],
  },
  {
    name: 's-no-idle-period',
    rule: 'swap',
    says: 'a task is eligible as soon as it is idle',
    edits: [
      edit(
        `${SWAP}/eligible.ts`,
        'eligibleFrom',
        'placement.idleSince + idlePeriodOf(placement.task, policy)',
        'placement.idleSince',
      ),
    ],
  },
  {
    name: 's-own-idle-period-ignored',
    rule: 'swap',
    says: 'a task with an idle period of its own is eligible after that of the cluster',
    edits: [edit(`${SWAP}/eligible.ts`, 'idlePeriodOf', 'idleSwapOutSeconds === null ? ', 'true ? ')],
    directed: { test: 'test/unit/explain-victim.test.ts' },
  },
  {
    name: 's-busy-is-a-victim',
    rule: 'swap',
    says: 'a task that wants the GPU is eligible',
    edits: [
      edit(
        `${SWAP}/eligible.ts`,
        'eligibleFrom',
        'const byIdleness = placement.wantsGpu ? Infinity : placement',
        'const byIdleness = placement',
      ),
    ],
  },
  {
    name: 's-idle-since-last-use-alone',
    rule: 'swap',
    says: 'the idle period does not restart with a swap-in',
    edits: [
      edit(
        `${ENGINE}/apply/lifecycle/transitions.ts`,
        'setResidency',
        '    if (!placement.isEager) placement.idleSince = placement.idleFrom = now\n',
        '',
      ),
    ],
  },
  {
    name: 's-requester-is-a-victim',
    rule: 'swap',
    says: 'a task is eligible for its own growth',
    edits: [edit(`${SWAP}/eligible.ts`, 'mayTake', '  if (placement.task === requester) return false\n', '')],
    likes: ['growth'],
  },
  {
    name: 's-no-room-in-host-memory',
    rule: 'swap',
    says: 'a task that does not fit in host memory is eligible',
    edits: [
      edit(
        `${SWAP}/eligible.ts`,
        'mayLeaveFor',
        ' && movableMib(placement) * placement.gpus.length <= hostFreeMib',
        ' && hostFreeMib > -1',
      ),
    ],
    likes: ['little_host_memory'],
    directed: { test: 'test/unit/victims-in-host-memory.test.ts' },
  },
  {
    name: 's-no-back-off',
    rule: 'swap',
    says: 'a task whose swap has failed is eligible at once',
    edits: [
      edit(
        `${SWAP}/eligible.ts`,
        'eligibleFrom',
        'Math.max(Math.min(byIdleness, byResidency), placement.backOffUntil)',
        'Math.min(byIdleness, byResidency)',
      ),
    ],
    likes: ['host_memory_short', 'disk_full', 'partition'],
    directed: { scenario: 'back-off-after-a-failed-swap' },
  },
  {
    name: 's-no-back-off-after-a-report',
    rule: 'swap',
    says: 'a swap that has failed is tried again at once when a report tells of it before the event',
    edits: [
      edit(
        'controller/engine/inputs/nodes/node-registry.ts',
        'isFailedSwap',
        'report.generation !== generation + 1',
        'report.generation !== generation',
      ),
    ],
    directed: { test: 'test/unit/last-word-of-a-node.test.ts' },
  },
  {
    name: 's-p0-for-any-task',
    rule: 'swap',
    says: 'a P0 task is a candidate for any preemptor',
    edits: [
      edit(
        `${SWAP}/eligible.ts`,
        'mayTake',
        '  return placement.task.spec.priority !== 0 || requester.spec.priority === 0\n',
        '  return true\n',
      ),
    ],
    likes: ['priorities'],
  },
  {
    name: 's-p0-bounded-by-residency',
    rule: 'swap',
    says: 'max_residency_seconds also applies to P0 tasks',
    edits: [
      edit(
        `${SWAP}/eligible.ts`,
        'eligibleFrom',
        'policy.maxResidencyMs !== null && placement.task.spec.priority !== 0',
        'policy.maxResidencyMs !== null',
      ),
    ],
    likes: ['max_residency'],
  },
  {
    name: 's-some-though-not-enough',
    rule: 'swap',
    says: 'victims are swapped out although all together do not cover the demand',
    edits: [
      edit(
        `${SWAP}/swap.ts`,
        'decideEntry',
        '  if (!isCollecting && !isCovered(entry, gpus, hostFreeMib)) return NOT_COVERED\n',
        '  void isCovered\n',
      ),
      edit(
        `${SWAP}/swap.ts`,
        'decideEntry',
        "isCollecting ? 'collect' : 'cover'",
        "isCollecting ? 'collect' : 'collect'",
      ),
    ],
    directed: { scenario: 'no-useless-swap-out' },
  },
  {
    name: 's-levels-reversed',
    rule: 'swap',
    says: 'already swapped tasks are chosen before others',
    edits: [
      edit(
        `${SWAP}/order.ts`,
        'levelOf',
        'Number(candidate.isSwappedThisRound)',
        'Number(!candidate.isSwappedThisRound)',
      ),
    ],
    directed: { test: 'test/unit/swap-victims.test.ts' },
  },
  {
    name: 's-p0-level-first',
    rule: 'swap',
    says: 'P0 tasks are chosen before others',
    edits: [
      edit(
        `${SWAP}/order.ts`,
        'levelOf',
        'VICTIM_CLASSES.indexOf(candidate.class)',
        '((VICTIM_CLASSES.indexOf(candidate.class) + 2) % VICTIM_CLASSES.length)',
      ),
    ],
    likes: ['priorities'],
    directed: { test: 'test/unit/swap-victims.test.ts' },
  },
  {
    name: 's-level-not-taken-whole',
    rule: 'swap',
    says: 'a level that is needed completely contributes only its largest task',
    edits: [
      edit(
        `${SWAP}/victims.ts`,
        'takeFromLevel',
        'const taken = isTakenWhole ? level : ',
        'const taken = isTakenWhole ? level.slice(0, 1) : ',
      ),
    ],
    directed: { test: 'test/unit/swap-victims.test.ts' },
  },
  {
    name: 's-oldest-not-first',
    rule: 'swap',
    says: 'the last swap-out is ignored in the choice',
    edits: [
      edit(
        `${SWAP}/victims.ts`,
        'takeFromLevel',
        'fewestBytesCovering(oldestBlocksCovering(level, missingMib), missingMib)',
        'fewestBytesCovering(level.length < 0 ? oldestBlocksCovering(level, missingMib) : level, missingMib)',
      ),
    ],
  },
  {
    name: 's-more-bytes-than-needed',
    rule: 'swap',
    says: 'complete blocks are chosen even if less VRAM is enough',
    edits: [
      edit(
        `${SWAP}/victims.ts`,
        'takeFromLevel',
        'fewestBytesCovering(oldestBlocksCovering(level, missingMib), missingMib)',
        'oldestBlocksCovering(level, missingMib).slice(fewestBytesCovering.length < 0 ? 1 : 0)',
      ),
    ],
  },
  {
    name: 's-round-never-closes',
    rule: 'swap',
    says: 'a round does not close when an already swapped task is taken',
    edits: [
      edit(
        `${SWAP}/victims.ts`,
        'coverOneGpu',
        'closedRounds.push({ gpu: shortage.gpu, class: closed })',
        'closedRounds.push(...[])',
      ),
    ],
  },
  {
    name: 's-closing-victims-fresh',
    rule: 'swap',
    says: 'the task that closes a round is new in the next round',
    edits: [
      edit(
        `${SWAP}/rounds.ts`,
        'enactRound',
        'round: isSwapped ? state.round + 1 : state.round',
        'round: state.round',
      ),
    ],
  },
  {
    name: 's-newcomer-is-last',
    rule: 'swap',
    says: 'a new task counts as already swapped in this round',
    edits: [
      edit(
        `${SWAP}/eligible.ts`,
        'eligibleOn',
        'isSwappedThisRound: mark.round === state.round',
        'isSwappedThisRound: mark.round === state.round || mark.round === -1',
      ),
    ],
  },
  {
    name: 's-marks-forgotten',
    rule: 'swap',
    says: 'a victim gets no mark',
    edits: [
      edit(
        `${SWAP}/rounds.ts`,
        'enactRound',
        '    state.marks.set(victim.id, {',
        '    new Map().set(victim.id, {',
      ),
    ],
  },
]

const RETURN: readonly Mutant[] = [
  {
    name: 's-owners-bytes-given-away',
    rule: 'return',
    says: 'VRAM freed for a task goes to the first task that requests any',
    edits: [
      edit(
        `${SWAP}/bytes.ts`,
        'freeForMib',
        '    kept += Math.max(0, claimant.needMib - movingOutForMib(gpu, claimant))\n',
        '    kept += 0 * movingOutForMib(gpu, claimant)\n',
      ),
    ],
    directed: { test: 'test/property/swap-engine.test.ts' },
  },
  {
    name: 's-owned-bytes-not-missed',
    rule: 'return',
    says: 'a shortage ignores VRAM reserved by others',
    edits: [
      edit(
        `${SWAP}/bytes.ts`,
        'shortMib',
        '    reservedMib += claimant.needMib\n',
        '    reservedMib += 0 * claimant.needMib\n',
      ),
    ],
    directed: { test: 'test/unit/return-queue.test.ts' },
  },
  {
    name: 's-returns-before-free',
    rule: 'return',
    says: 'a task returns although its VRAM is not free yet',
    edits: [
      edit(
        `${SWAP}/swap.ts`,
        'decideEntry',
        '  if (isOnItsWayOut(entry, gpus)) return WAIT\n',
        '  if (isOnItsWayOut(entry, gpus)) return READY\n',
      ),
    ],
  },
  {
    name: 's-return-order-reversed',
    rule: 'return',
    says: 'the latest return request is served first',
    edits: [
      edit(
        `${SWAP}/resume.ts`,
        'byReturnOrder',
        'rankOf(b, policy, now) || a.askedAt - b.askedAt',
        'rankOf(b, policy, now) || b.askedAt - a.askedAt',
      ),
    ],
  },
  {
    name: 's-p0-returns-in-turn',
    rule: 'return',
    says: 'P0 has no precedence in returning',
    edits: [
      edit(
        `${SWAP}/resume.ts`,
        'rankOf',
        'entry.task.spec.priority === 0 || hasAged(entry, policy, now) ? 0 : 1',
        'hasAged(entry, policy, now) ? 0 : 1',
      ),
    ],
    directed: { scenario: 'p0-returns-first' },
  },
  {
    name: 's-no-aging-of-returns',
    rule: 'return',
    says: 'a long wait never ranks with P0',
    edits: [
      edit(
        `${SWAP}/resume.ts`,
        'rankOf',
        'entry.task.spec.priority === 0 || hasAged(entry, policy, now) ? 0 : 1',
        'entry.task.spec.priority === 0 ? 0 : 1 + 0 * now * policy.swapInAgingMs',
      ),
    ],
    directed: { test: 'test/unit/return-queue.test.ts' },
  },
  {
    name: 's-uncovered-keeps-its-hold',
    rule: 'return',
    says: 'an entry that is no longer covered keeps its reserved VRAM',
    edits: [
      edit(
        `${ENGINE}/apply/vram/node-queue.ts`,
        'serve',
        'if (!preemptCollector(c, entry, now)) return release(c, entry, now)\n',
        "if (!preemptCollector(c, entry, now)) return 'unchanged'\n",
      ),
    ],
    directed: { scenario: 'uncovered-owner-lets-go' },
  },
  {
    name: 's-no-collector',
    rule: 'return',
    says: 'no entry becomes the collector',
    edits: [
      edit(
        `${ENGINE}/apply/vram/collector.ts`,
        'appointCollector',
        '  if (node.collector !== null) return false\n',
        '  if (node.queue.length >= 0) return false\n',
      ),
    ],
  },
  {
    name: 's-two-collectors',
    rule: 'return',
    says: 'a node has more than one collector',
    edits: [
      edit(
        `${ENGINE}/apply/vram/collector.ts`,
        'appointCollector',
        '  if (node.collector !== null) return false\n',
        '',
      ),
    ],
  },
  {
    name: 's-collector-stays-for-p0',
    rule: 'return',
    says: 'a collector keeps VRAM that a P0 entry needs',
    edits: [
      edit(
        `${ENGINE}/apply/vram/node-queue.ts`,
        'serve',
        'if (!preemptCollector(c, entry, now)) return release(c, entry, now)',
        'if (entry.node !== null) return release(c, entry, now)',
      ),
    ],
    directed: { scenario: 'collector-makes-room-for-p0' },
  },
  {
    name: 's-what-is-left-over-goes-on',
    rule: 'return',
    says: 'VRAM that an owner releases for an entry goes only to entries behind that one',
    edits: [
      edit(`${ENGINE}/apply/vram/node-queue.ts`, 'serveNode', "      if (served === 'freed') break\n", ''),
    ],
    directed: { test: 'test/unit/collector.test.ts' },
  },
  {
    name: 's-no-holds-of-old-entries',
    rule: 'return',
    says: 'later placements use the VRAM that an old entry lacks',
    edits: [
      edit(
        `${ENGINE}/apply/vram/reservations.ts`,
        'updateEntryReservations',
        '    if (whyNotReserving(entry, c.policy, now) !== null) continue\n',
        '    if (entry.askedAt <= now) continue\n',
      ),
    ],
    directed: { scenario: 'old-return-keeps-its-gpu' },
  },
  {
    name: 's-grown-stays',
    rule: 'return',
    says: 'a growth that has waited long does not become a return',
    edits: [
      edit(
        'controller/policy/growth.ts',
        'decideOldGrowth',
        "return { kind: mayLeave ? 'return_grown' : 'wait' }",
        "return { kind: mayLeave ? 'wait' : 'wait' }",
      ),
    ],
    likes: ['growth'],
    directed: { test: 'test/property/swap-engine.test.ts' },
  },
  {
    name: 's-wish-ignored',
    rule: 'return',
    says: 'a swapped-out task that wants the GPU does not request its return',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-events.ts`,
        'applyWants',
        "  if (wantsGpu && placement.residency === 'swapped_out') askForSwapIn(c, placement, now)\n",
        '',
      ),
    ],
    directed: { test: 'test/property/swap-engine.test.ts' },
  },
  {
    name: 's-no-probes',
    rule: 'return',
    says: 'a task that cannot signal is never returned by a probe',
    edits: [
      edit(
        `${ENGINE}/apply/lifecycle/probes.ts`,
        'planProbe',
        'c.wake(at, (due) => runProbe(c, placement, due))',
        '() => {}',
      ),
    ],
    likes: ['no_signals'],
  },
  {
    name: 's-probe-lost-with-a-restart',
    rule: 'return',
    says: 'a restarted controller does not probe swapped-out tasks',
    edits: [edit(`${ENGINE}/recovery.ts`, 'restorePlacement', '    planProbe(c, placement, now)\n', '')],
    likes: ['no_signals'],
    directed: { test: 'test/unit/swap-probe.test.ts' },
  },
  {
    name: 's-probe-spent-by-a-failure',
    rule: 'return',
    says: 'a probe whose swap-in is refused or fails has no effect, and another period passes',
    edits: [
      edit(
        `${ENGINE}/inputs/nodes/node-events.ts`,
        'isWantedBack',
        '  return wantsGpu || isSwapInRequested || isProbed || (stopping?.graceMs ?? 0) > 0\n',
        '  return wantsGpu || isSwapInRequested || (stopping?.graceMs ?? 0) > 0\n',
      ),
    ],
    likes: ['no_signals'],
    directed: { test: 'test/unit/swap-probe.test.ts' },
  },
  {
    name: 's-probe-spent-beside-another',
    rule: 'return',
    says: 'a probe that finds the return already requested has no effect, also when the request is withdrawn',
    edits: [
      edit(
        `${ENGINE}/apply/lifecycle/probes.ts`,
        'runProbe',
        '  if (placement.isOver) return\n',
        '  if (placement.isOver || placement.entry !== null) return\n',
      ),
    ],
    likes: ['hands'],
    directed: { test: 'test/unit/swap-probe.test.ts' },
  },
]

export const SWAP_MUTANTS: readonly Mutant[] = [...VICTIMS, ...RETURN]
