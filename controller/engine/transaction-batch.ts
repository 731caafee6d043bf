import type { Batch } from '../ports/store.ts'
import type { Cluster } from '../state/cluster.ts'
import { recordOfNode, recordOfTask } from '../state/records.ts'
import type { Transaction } from '../state/transaction.ts'

/** Returns the batch of a transaction, with the records as they are now. */
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

/** A store that keeps no records needs no lists. */
const NOTHING: readonly never[] = []
