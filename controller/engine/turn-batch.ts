import type { Batch } from '../ports/store.ts'
import type { Cluster } from './cluster.ts'
import { recordOfNode, recordOfTask } from './records.ts'
import type { Turn } from './turn.ts'

/** A turn as the store takes it: records as they are now. */
export function batchOf(
  { recorder, nextTaskSeq }: Cluster,
  turn: Turn,
  epoch: number,
  controller: string,
): Batch {
  return {
    tasks: turn.dirtyTasks.length === 0 ? NOTHING : turn.dirtyTasks.map(recordOfTask),
    nodes: turn.dirtyNodes.length === 0 ? NOTHING : turn.dirtyNodes.map(recordOfNode),
    forgottenNodeIds: turn.forgottenNodeIds,
    groups: turn.groups,
    deletedGroupIds: turn.deletedGroupIds,
    config: turn.config,
    events: turn.events,
    decisions: turn.decisions,
    access: turn.access,
    submissionKeys: turn.submissionKeys,
    endsRecovery: turn.endsRecovery,
    controller,
    marks: { epoch, nextTaskSeq, nextEventSeq: recorder.nextEventSeq, nextDecision: recorder.nextDecision },
  }
}

/** Of a store that keeps no records there are none to write: no lists are made then. */
const NOTHING: readonly never[] = []
