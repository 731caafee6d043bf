/** Mutants: each removes one rule of tasks that move their VRAM themselves (docs/decisions/0126). */
import { edit, type Mutant } from './mutant.ts'

const STEPS = 'gpu-server/core/swap-steps.ts'
const SWAPS = 'gpu-server/core/swaps.ts'
const LEDGER = 'controller/state/gpu-ledger.ts'
const SIMULATED = { test: 'test/unit/simulated-hooks.test.ts' }
const likes = ['hooks']

const OF_THE_SERVER: readonly Mutant[] = [
  {
    name: 'h-what-stays-is-foreign',
    rule: 'hooks',
    says: 'what a task does not leave when it is told again counts as foreign for ever',
    edits: [
      edit(
        SWAPS,
        'Swaps.restStays',
        "if (residency !== 'swapped_out' ||",
        "if (residency === 'swapped_out' ||",
      ),
    ],
    likes,
    directed: { scenario: 'faults/rest-stays' },
  },
  {
    name: 'h-claim-is-believed',
    rule: 'hooks',
    says: 'what a task says about its rest counts, not what the device measures',
    edits: [
      edit(
        STEPS,
        'suspendByHooks',
        '(yield* measureUntilSmall(task, ground)) ?? answer.residentMib ?? 0',
        'answer.residentMib ?? 0',
      ),
    ],
    likes,
    directed: SIMULATED,
  },
  {
    name: 'h-anything-may-stay',
    rule: 'hooks',
    says: 'a suspend may leave any part',
    edits: [edit(STEPS, 'mostResidualMib', 'return Math.min(bound, vramMib - 1)', 'return vramMib - 1')],
    likes,
    directed: SIMULATED,
  },
  {
    name: 'h-nothing-freed-is-done',
    rule: 'hooks',
    says: 'a suspend that frees nothing of a small task is done',
    edits: [edit(STEPS, 'mostResidualMib', 'return Math.min(bound, vramMib - 1)', 'return bound')],
    likes,
    directed: SIMULATED,
  },
  {
    name: 'h-never-given-up',
    rule: 'hooks',
    says: 'hooks that keep failing are called again',
    edits: [edit(STEPS, 'failed', 'task.hookFailures.length >= MAX_FAILURES', 'false')],
    likes,
    directed: SIMULATED,
  },
  {
    name: 'h-given-up-at-once',
    rule: 'hooks',
    says: 'hooks that failed once are not called again',
    edits: [edit(STEPS, 'failed', 'task.hookFailures.length >= MAX_FAILURES', 'true')],
    likes,
    directed: SIMULATED,
  },
  {
    name: 'h-surplus-is-free',
    rule: 'hooks',
    says: 'VRAM that a task took back while it is out is given to others',
    edits: [
      edit(STEPS, 'surplusMib', "swappedOutBy === 'driver' ? 0 : Math.max(0, usedMib - residualMib)", '0'),
    ],
    likes,
    directed: SIMULATED,
  },
  {
    name: 'h-not-told-again',
    rule: 'hooks',
    says: 'a task that took its VRAM back is left with it',
    edits: [edit(STEPS, 'mayTellAgain', 'return isBack && (', 'return false && (')],
    likes,
    directed: { test: 'test/unit/swap-steps.test.ts' },
  },
  {
    name: 'h-last-mib-is-left',
    rule: 'hooks',
    says: 'a task that took all of its VRAM back after most of it became its rest is not told again',
    edits: [
      edit(
        STEPS,
        'mayTellAgain',
        '2 * surplusMib(task, usedMib) > task.vramMib - task.residualMib',
        'surplusMib(task, usedMib) > 1 && 2 * surplusMib(task, usedMib) > task.vramMib - task.residualMib',
      ),
    ],
    likes,
    directed: { scenario: 'regressions/last-mib-taken-back' },
  },
  {
    name: 'h-rest-is-free-on-the-server',
    rule: 'hooks',
    says: 'the server gives what a task keeps to others',
    edits: [
      edit(
        SWAPS,
        'Swaps.#suspended',
        'ledger.leaveVram(attempt, attempt.residualMib)\n      this.#moved(attempt, ',
        'ledger.leaveVram(attempt)\n      this.#moved(attempt, ',
      ),
    ],
    likes,
  },
  {
    name: 'h-rest-in-host-memory',
    rule: 'hooks',
    says: 'what a task keeps in VRAM counts in host memory, too',
    edits: [
      edit(SWAPS, 'Swaps.#suspended', '(attempt.residentMib - attempt.residualMib)', 'attempt.residentMib'),
    ],
    likes,
    directed: SIMULATED,
  },
  {
    name: 'h-rest-forgotten-at-a-restart',
    rule: 'hooks',
    says: 'a restarted server knows nothing of what tasks keep',
    edits: [
      edit('gpu-server/core/adoption.ts', 'adoptedFrom', 'isOut ? (before?.residualMib ?? 0) : 0', '0'),
    ],
    likes,
  },
]

const OF_THE_CONTROLLER: readonly Mutant[] = [
  {
    name: 'h-rest-is-not-in-n',
    rule: 'hooks',
    says: 'what a task keeps is not counted with the noswap tasks',
    edits: [edit(LEDGER, 'commitPlacement', 'if (residualMib > 0) {', 'if (residualMib < 0) {')],
    likes,
    directed: { test: 'test/unit/residual-vram.test.ts' },
  },
  {
    name: 'h-rest-leaves-too',
    rule: 'hooks',
    says: 'a victim is taken to free all of its demand, as before it left a rest',
    edits: [
      edit(
        'controller/model/placement.ts',
        'movableMib',
        'return demandMib - residualMib',
        'return demandMib',
      ),
    ],
    likes,
    directed: { test: 'test/unit/residual-vram.test.ts' },
  },
  {
    name: 'h-rest-of-an-event-ignored',
    rule: 'hooks',
    says: 'the controller does not read what a swap-out left',
    edits: [
      edit(
        'controller/engine/inputs/nodes/node-events.ts',
        'applyResidency',
        'setSwappedOut(c, placement, event.residual_mib ?? 0, ',
        'setSwappedOut(c, placement, 0, ',
      ),
    ],
    likes,
  },
  {
    name: 'h-rest-of-a-report-told-late',
    rule: 'hooks',
    says: 'the event about a reported swap-out has the rest of an earlier one',
    edits: [
      edit(
        'controller/engine/inputs/nodes/node-registry.ts',
        'reconcile',
        "if (report.residency === 'resident') setResidency(c, placement, report.residency, null, now)\n" +
          '    else setSwappedOut(c, placement, report.residual_mib ?? 0, null, now)',
        'setResidency(c, placement, report.residency, null, now)',
      ),
    ],
    likes,
    directed: { test: 'test/unit/residual-vram.test.ts' },
  },
  {
    name: 'h-asks-for-the-old-rest',
    rule: 'hooks',
    says: 'a task whose rest has changed goes on waiting for what it needed before',
    edits: [
      edit(
        'controller/engine/apply/lifecycle/entries.ts',
        'askForSwapIn',
        'if (before?.needMib === needMib) return',
        'if (before !== null) return',
      ),
    ],
    likes,
    directed: { scenario: 'faults/rest-stays' },
  },
  {
    name: 'h-grows-with-its-rest',
    rule: 'hooks',
    says: 'what a task keeps itself counts against the demand with which it returns',
    edits: [
      edit(
        'controller/engine/apply/lifecycle/transitions.ts',
        'askForReturnGrown',
        'heldGrowth.mib - residualMib <= capacityForSwappableMib(gpu)',
        'heldGrowth.mib <= capacityForSwappableMib(gpu)',
      ),
    ],
    likes,
    directed: { scenario: 'regressions/grows-with-a-rest' },
  },
]

export const HOOK_MUTANTS: readonly Mutant[] = [...OF_THE_SERVER, ...OF_THE_CONTROLLER]
