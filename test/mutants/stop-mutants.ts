/** Mutants: each removes one rule of a stop (docs/protocol.md, "A stop"). */
import { edit, type Mutant } from './mutant.ts'

export const STOP_MUTANTS: readonly Mutant[] = [
  {
    name: 'stop-without-grace',
    rule: 'stop',
    says: 'the controller orders every stop without a grace',
    edits: [
      edit(
        'controller/engine/apply/node-commands.ts',
        'stopEffect',
        'addressOf(placement), reason, graceMs }',
        'addressOf(placement), reason, graceMs: graceMs * 0 }',
      ),
    ],
    likes: ['stop_graces'],
  },
  {
    name: 'stop-kills-in-the-grace',
    rule: 'stop',
    says: 'a server that receives a stop again kills the task at once',
    edits: [
      edit(
        'gpu-server/core/runs.ts',
        'Runs.stop',
        '    if (attempt.endsAs !== null && !(attempt.hasGrace && graceMs === 0)) return\n',
        '    if (attempt.endsAs !== null) graceMs = 0\n',
      ),
    ],
    likes: ['stop_graces', 'crash_controller'],
    directed: { test: 'test/unit/stop-grace.test.ts' },
  },
  {
    name: 'stop-never-ends',
    rule: 'stop',
    says: 'a server ignores a stop with a grace',
    edits: [
      edit(
        'gpu-server/core/runs.ts',
        'Runs.stop',
        '    this.#parts.device.stop(attempt.taskId, attempt.attempt, graceMs)\n',
        '    if (graceMs === 0) this.#parts.device.stop(attempt.taskId, attempt.attempt, graceMs)\n',
      ),
    ],
    likes: ['stop_graces'],
  },
  {
    name: 'stop-victim',
    rule: 'stop',
    says: 'a stopping task is swapped out for another one',
    edits: [
      edit(
        'controller/policy/swap/eligible.ts',
        'eligibleFrom',
        '  if (placement.isOver || isStopping(placement)) return null\n',
        '  if (placement.isOver) return null\n',
      ),
    ],
    likes: ['stop_graces'],
  },
]
