/**
 * A captured transaction: decisions that are not durable yet. Records are made from the live objects at the
 * commit.
 */
import type { Decision } from '../../model/decision.ts'
import type { Effect } from '../../model/effect.ts'
import type { Event } from '../../model/event.ts'
import type { Group } from '../../model/group.ts'
import type { ConfigRecord } from '../../ports/store.ts'
import type { Cluster } from '../../state/cluster.ts'
import { Transaction } from '../../state/transaction.ts'

export interface TransactionCheckpoint {
  /** Only open tasks; the end of a task has an event. */
  readonly dirtyTasks: readonly string[]
  readonly dirtyNodes: readonly string[]
  readonly forgottenNodeIds: readonly string[]
  readonly groups: readonly Group[]
  readonly deletedGroupIds: readonly string[]
  readonly config: ConfigRecord | null
  readonly events: readonly Event[]
  readonly submissionKeys: Transaction['submissionKeys']
  readonly decisions: readonly Decision[]
  readonly effects: readonly Effect[]
  /** There are changes of tokens or audit entries; their content is not captured. */
  readonly hasAccess: boolean
  readonly renewsEpoch: boolean
  readonly endsRecovery: boolean
  /** For each acknowledgement: the node that gets a lease with it; null: none. */
  readonly acknowledgements: readonly (string | null)[]
}

export function captureTransaction(transaction: Transaction): TransactionCheckpoint {
  return {
    dirtyTasks: transaction.dirtyTasks.map(({ spec }) => spec.id),
    dirtyNodes: transaction.dirtyNodes.map(({ id }) => id),
    forgottenNodeIds: [...transaction.forgottenNodeIds],
    groups: [...transaction.groups],
    deletedGroupIds: [...transaction.deletedGroupIds],
    config: transaction.config,
    events: [...transaction.events],
    submissionKeys: transaction.submissionKeys,
    decisions: [...transaction.decisions],
    effects: [...transaction.effects],
    hasAccess: transaction.access !== null,
    renewsEpoch: transaction.renewsEpoch,
    endsRecovery: transaction.endsRecovery,
    acknowledgements: transaction.acknowledgements.map(({ leaseTo }) => leaseTo ?? null),
  }
}

/** @param giveLease applies the effect of an acknowledgement on this side */
export function restoreTransaction(
  c: Cluster,
  checkpoint: TransactionCheckpoint,
  giveLease: (nodeId: string) => void,
): Transaction {
  const transaction = new Transaction()
  transaction.dirtyTasks.push(...checkpoint.dirtyTasks.flatMap((id) => c.tasks.get(id) ?? []))
  transaction.dirtyNodes.push(...checkpoint.dirtyNodes.flatMap((id) => c.nodes.get(id) ?? []))
  transaction.forgottenNodeIds.push(...checkpoint.forgottenNodeIds)
  transaction.groups.push(...checkpoint.groups)
  transaction.deletedGroupIds.push(...checkpoint.deletedGroupIds)
  transaction.config = checkpoint.config
  transaction.events.push(...checkpoint.events)
  transaction.submissionKeys = checkpoint.submissionKeys
  transaction.decisions.push(...checkpoint.decisions)
  transaction.effects.push(...checkpoint.effects)
  if (checkpoint.hasAccess) transaction.access = { tokens: [], revokedTokenIds: [], audits: [] }
  transaction.renewsEpoch = checkpoint.renewsEpoch
  transaction.endsRecovery = checkpoint.endsRecovery
  for (const leaseTo of checkpoint.acknowledgements) {
    const done = leaseTo === null ? NOTHING_MORE : (): void => giveLease(leaseTo)
    transaction.acknowledgements.push({
      done,
      failed: NOTHING_MORE,
      ...(leaseTo === null ? {} : { leaseTo }),
    })
  }
  return transaction
}

const NOTHING_MORE = (): void => {}
