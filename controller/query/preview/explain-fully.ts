/**
 * The full explanation of an open task: why it waits, the verdict of each node, what would place it, and
 * whether it could be swapped out.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { WaitExplanation } from '../explain/explain.ts'
import type { Cluster } from '../../state/cluster.ts'
import type { NodeVerdicts } from '../explain/explain-nodes.ts'
import { verdictsOn } from '../explain/explain-nodes.ts'
import { explainTask, factsOf, requestOf, waitingOf } from '../explain/explain-task.ts'
import type { WaitState } from '../explain/explain-task.ts'
import type { VictimExplanation } from '../explain/explain-victim.ts'
import { explainVictim } from '../explain/explain-victim.ts'
import type { LiveTask } from '../../state/facts.ts'
import type { WouldFit, WouldFitIf } from './would-fit.ts'
import { wouldFitIf } from './would-fit.ts'
import { provisoOf, wouldFitInWords } from './would-fit-words.ts'

export interface FullExplanation {
  /** Null if the task does not wait. */
  readonly wait: WaitExplanation | null
  /** For a pending task without reserved VRAM; otherwise null. */
  readonly nodes: NodeVerdicts | null
  readonly wouldFitIf: (Omit<WouldFitIf, 'changes'> & { readonly changes: readonly WordedChange[] }) | null
  /** For a placed task; otherwise null. */
  readonly victim: VictimExplanation | null
}

export interface WordedChange {
  readonly change: WouldFit
  readonly sentence: string
  /** Null: nothing can take the room first. */
  readonly proviso: string | null
}

export function explainFully(
  c: WaitState & Pick<Cluster, 'nodes'>,
  task: LiveTask,
  now: Instant,
): FullExplanation {
  const wait = explainTask(c, task, now)
  const victim = task.placement === null ? null : explainVictim(c, task.placement, now)
  if (task.state !== 'pending' || task.placementEntry?.hasReserved === true)
    return { wait, nodes: null, wouldFitIf: null, victim }
  const waiting = waitingOf(c, task)
  const nodes = verdictsOn(waiting.pool.nodes.keys(), factsOf(c, waiting, now), requestOf(c, waiting))
  const answer = wouldFitIf(c, task, now)
  const tasksBefore = Math.max(0, (wait?.queuePosition ?? 1) - 1)
  const changes = answer.changes.map((change) => ({
    change,
    sentence: wouldFitInWords(change, now),
    proviso: provisoOf(change, tasksBefore),
  }))
  return { wait, nodes, wouldFitIf: { ...answer, changes }, victim }
}
