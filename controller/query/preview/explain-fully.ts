/**
 * The full explanation of an open task: why it waits, the verdict of each node, what would place it, and
 * whether it could be swapped out.
 */
import type { Instant } from '../../../protocol/units.ts'
import { explainPending, type WaitExplanation } from '../explain/explain.ts'
import type { Cluster } from '../../state/cluster.ts'
import { verdictsOn, type NodeVerdicts } from '../explain/explain-nodes.ts'
import { explainTask, factsOf, requestOf, waitingOf, type WaitState } from '../explain/explain-task.ts'
import { explainVictim, type VictimExplanation } from '../explain/explain-victim.ts'
import type { LiveTask } from '../../state/facts.ts'
import { wouldFitIf, type WouldFit, type WouldFitIf } from './would-fit.ts'
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
  const victim = task.placement === null ? null : explainVictim(c, task.placement, now)
  if (task.state !== 'pending' || task.placementEntry?.hasReserved === true)
    return { wait: explainTask(c, task, now), nodes: null, wouldFitIf: null, victim }
  const waiting = waitingOf(c, task)
  const facts = factsOf(c, waiting, now)
  const wait = explainPending(facts)
  const nodes = verdictsOn(waiting.pool.nodes.keys(), facts, requestOf(c, waiting))
  const answer = wouldFitIf(c, task, now)
  const tasksBefore = Math.max(0, (waiting.position ?? 1) - 1)
  const changes = answer.changes.map((change) => ({
    change,
    sentence: wouldFitInWords(change, now),
    proviso: provisoOf(change, tasksBefore),
  }))
  return { wait, nodes, wouldFitIf: { ...answer, changes }, victim }
}
