import type { Batch } from '../ports/store.ts'
import type { Cluster } from './cluster.ts'
import { recordOfNode, recordOfTask } from './records.ts'
import type { Transaction } from './transaction.ts'

/** A turn as the store takes it: records as they are now. */
export function batchOf(
  { eventLog, nextTaskSeq }: Cluster,
  transaction: Transaction,
  epoch: number,
  controller: string,
): Batch {
  return {
    tasks: transaction.dirtyTasks.length === 0 ? NOTHING : transaction.dirtyTasks.map(recordOfTask),
    nodes: transaction.dirtyNodes.length === 0 ? NOTHING : transaction.dirtyNodes.map(recordOfNode),
    forgottenNodeIds: transaction.forgottenNodeIds,
    groups: transaction.groups,
    deletedGroupIds: transaction.deletedGroupIds,
    config: transaction.config,
    events: transaction.events,
    decisions: transaction.decisions,
    access: transaction.access,
    submissionKeys: transaction.submissionKeys,
    endsRecovery: transaction.endsRecovery,
    controller,
    marks: { epoch, nextTaskSeq, nextEventSeq: eventLog.nextEventSeq, nextDecision: eventLog.nextDecision },
  }
}

/** Of a store that keeps no records there are none to write: no lists are made then. */
const NOTHING: readonly never[] = []
