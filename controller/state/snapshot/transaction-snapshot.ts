/**
 * A captured transaction: decisions that are not durable yet. Records are made from the live objects at the
 * commit. Changes of tokens and audit entries are noted, without their content.
 */
import { noAccessChanges } from '../../ports/store.ts'
import type { Cluster } from '../cluster.ts'
import { Transaction } from '../transaction.ts'

export type TransactionSnapshot = ReturnType<typeof captureTransaction>

export function captureTransaction(transaction: Transaction) {
  const { dirtyTasks, dirtyNodes, access, acknowledgements, ...rest } = transaction
  return {
    ...structuredClone(rest),
    /** Only open tasks; the end of a task has an event. */
    dirtyTasks: dirtyTasks.map(({ spec }) => spec.id),
    dirtyNodes: dirtyNodes.map(({ id }) => id),
    hasAccess: access !== null,
    /** The node that gets a lease with it; null: none. */
    acknowledgements: acknowledgements.map(({ leaseTo }) => leaseTo ?? null),
  }
}

/** @param giveLease applies the effect of an acknowledgement on this side */
export function restoreTransaction(
  c: Cluster,
  { dirtyTasks, dirtyNodes, hasAccess, acknowledgements, ...rest }: TransactionSnapshot,
  giveLease: (nodeId: string) => void,
): Transaction {
  return Object.assign(new Transaction(), rest, {
    dirtyTasks: dirtyTasks.flatMap((id) => c.tasks.get(id) ?? []),
    dirtyNodes: dirtyNodes.flatMap((id) => c.nodes.get(id) ?? []),
    access: hasAccess ? noAccessChanges() : null,
    acknowledgements: acknowledgements.map((leaseTo) => ({
      done: leaseTo === null ? NOTHING : () => giveLease(leaseTo),
      failed: NOTHING,
      ...(leaseTo === null ? {} : { leaseTo }),
    })),
  })
}

const NOTHING = (): void => {}
