/** The controllers of one store as its leader sees them, and the handover of the lead to another one. */
import type { DurationMs } from '../../protocol/units.ts'

export interface Standby {
  readonly name: string
  readonly url: string
  /** Version of its program. */
  readonly version: string
  readonly mayLead: boolean
  /** Since it was last seen. */
  readonly ageMs: DurationMs
  /** How far it was behind the leader then; null: it does not follow. */
  readonly lagMs: DurationMs | null
}

export interface LeaderView {
  /** Null: no controller leads. An empty URL: it does not answer requests yet, or it is alone. */
  readonly leader: { readonly name: string; readonly url: string } | null
  readonly epoch: number
  /** By name; those seen lately. */
  readonly standbys: readonly Standby[]
}

export interface Handover {
  /** @throws StoreFault */
  view(): Promise<LeaderView>
  /** Ends the term of this leader soon. @param to the next leader; null: any other */
  resign(to: string | null): void
}

/** A standby holds a request for this long: one that is further behind would refuse some. */
const MAX_HANDOVER_LAG_MS: DurationMs = 5_000

export const NOT_READY = ['never_leads', 'not_following', 'too_far_behind'] as const
export type NotReady = (typeof NOT_READY)[number]

/** Why no handover to this standby is accepted; null: it is accepted. */
export function notReady({ mayLead, lagMs }: Standby): NotReady | null {
  if (!mayLead) return 'never_leads'
  if (lagMs === null) return 'not_following'
  return lagMs > MAX_HANDOVER_LAG_MS ? 'too_far_behind' : null
}

/** Why the leader cannot hand over, for operators; null: it can. @param to null: to any standby */
export function handoverRefusal({ leader, standbys }: LeaderView, to: string | null): string | null {
  if (leader === null) return 'No controller is the leader at the moment. Try again after a few seconds.'
  if (to === leader.name) return `${to} leads already.`
  if (standbys.length === 0)
    return 'No standby is available. Start another controller on the same PostgreSQL store.'
  const wanted = to === null ? standbys : standbys.filter(({ name }) => name === to)
  if (wanted.length === 0)
    return `${to} is not a standby. Standbys: ${standbys.map(({ name }) => name).join(', ')}.`
  if (wanted.some((standby) => notReady(standby) === null)) return null
  return `No standby can take over: ${wanted.map(reasonOf).join('; ')}.`
}

function reasonOf(standby: Standby): string {
  const { name, lagMs } = standby
  switch (notReady(standby)) {
    case 'never_leads':
      return `${name} never leads (CONTROLLER_MAY_LEAD)`
    case 'not_following':
      return `${name} has not loaded the state of the leader yet`
    case 'too_far_behind':
      return `${name} is ${lagMs} ms behind the leader (maximum ${MAX_HANDOVER_LAG_MS} ms)`
    case null:
      return name
  }
}
