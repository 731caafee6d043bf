/**
 * A turn in its written form: what was decided and is not durable yet. Records are made from the live objects
 * when it is committed.
 */
import type { Decision } from '../../domain/decision.ts'
import type { Effect } from '../../domain/effect.ts'
import type { Event } from '../../domain/event.ts'
import type { Group } from '../../domain/group.ts'
import type { ConfigRecord } from '../../ports/store.ts'
import type { Cluster } from '../cluster.ts'
import { Turn } from '../turn.ts'

export interface TurnMemory {
  /** Those that have not ended; of one that has there is an event. */
  readonly dirtyTasks: readonly string[]
  readonly dirtyNodes: readonly string[]
  readonly forgottenNodeIds: readonly string[]
  readonly groups: readonly Group[]
  readonly deletedGroupIds: readonly string[]
  readonly config: ConfigRecord | null
  readonly events: readonly Event[]
  readonly submissionKeys: Turn['submissionKeys']
  readonly decisions: readonly Decision[]
  readonly effects: readonly Effect[]
  /** Something of tokens or audit; what is not said. */
  readonly hasAccess: boolean
  readonly renewsEpoch: boolean
  readonly endsRecovery: boolean
  /** By answer: the node that is given a lease with it; null: nobody is. */
  readonly answers: readonly (string | null)[]
}

export function noteTurn(turn: Turn): TurnMemory {
  return {
    dirtyTasks: turn.dirtyTasks.map(({ spec }) => spec.id),
    dirtyNodes: turn.dirtyNodes.map(({ id }) => id),
    forgottenNodeIds: [...turn.forgottenNodeIds],
    groups: [...turn.groups],
    deletedGroupIds: [...turn.deletedGroupIds],
    config: turn.config,
    events: [...turn.events],
    submissionKeys: turn.submissionKeys,
    decisions: [...turn.decisions],
    effects: [...turn.effects],
    hasAccess: turn.access !== null,
    renewsEpoch: turn.renewsEpoch,
    endsRecovery: turn.endsRecovery,
    answers: turn.answers.map(({ leaseTo }) => leaseTo ?? null),
  }
}

/** @param giveLease what an answer to a node does here, beside telling it. */
export function recallTurn(c: Cluster, memory: TurnMemory, giveLease: (nodeId: string) => void): Turn {
  const turn = new Turn()
  turn.dirtyTasks.push(...memory.dirtyTasks.flatMap((id) => c.tasks.get(id) ?? []))
  turn.dirtyNodes.push(...memory.dirtyNodes.flatMap((id) => c.nodes.get(id) ?? []))
  turn.forgottenNodeIds.push(...memory.forgottenNodeIds)
  turn.groups.push(...memory.groups)
  turn.deletedGroupIds.push(...memory.deletedGroupIds)
  turn.config = memory.config
  turn.events.push(...memory.events)
  turn.submissionKeys = memory.submissionKeys
  turn.decisions.push(...memory.decisions)
  turn.effects.push(...memory.effects)
  if (memory.hasAccess) turn.access = { tokens: [], revokedTokenIds: [], audits: [] }
  turn.renewsEpoch = memory.renewsEpoch
  turn.endsRecovery = memory.endsRecovery
  for (const leaseTo of memory.answers) {
    const done = leaseTo === null ? NOTHING_MORE : (): void => giveLease(leaseTo)
    turn.answers.push({ done, failed: NOTHING_MORE, ...(leaseTo === null ? {} : { leaseTo }) })
  }
  return turn
}

const NOTHING_MORE = (): void => {}
