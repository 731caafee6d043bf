/** A cluster as the next controller restores it from the store. */
import { recordOfNode, recordOfTask } from '../../controller/state/records.ts'
import { restore } from '../../controller/engine/recovery.ts'
import { NO_HISTORY, type TaskRecord } from '../../controller/ports/store.ts'
import { ClusterBuilder } from './cluster-builder.ts'

export interface Restart {
  /** The time of its clock; by default that of the previous one. */
  readonly now?: number
  /** Members that are missing in the records of placements. */
  readonly forgets?: readonly string[]
}

/** All nodes have reported since. */
export function restarted(
  before: ClusterBuilder,
  { now = before.now, forgets = [] }: Restart = {},
): ClusterBuilder {
  const after = new ClusterBuilder()
  after.now = now
  const marks = { epoch: 1, nextTaskSeq: 10, nextEventSeq: 100, nextDecision: 10 }
  const finishedCounts = { completed: 0, failed: 0, cancelled: 0, lost: 0 }
  const config = { revision: 1, at: 0, author: null, fields: before.cluster.config.fields }
  const stored = {
    openTasks: before.tasks.map((task) => without(recordOfTask(task), forgets)),
    nodes: [...before.cluster.nodes.values()].map(recordOfNode),
    groups: [],
    config,
    tokens: [],
    secrets: [],
    lastAuditSeq: 0,
    submissionKeys: [],
    ...NO_HISTORY,
    marks,
    finishedCounts,
  }
  restore(after.cluster, structuredClone(stored), after.now)
  for (const node of after.cluster.nodes.values()) after.heartbeat(node)
  return after
}

function without({ placement, ...record }: TaskRecord, fields: readonly string[]): TaskRecord {
  if (placement === null) return { ...record, placement }
  return {
    ...record,
    placement: Object.fromEntries(
      Object.entries(placement).filter(([name]) => !fields.includes(name)),
    ) as typeof placement,
  }
}
