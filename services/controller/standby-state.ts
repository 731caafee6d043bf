/** What a controller that does not lead knows of the store and of the leader. */
import type { LeaderSeen } from '../../controller/adapters/postgres/messages.ts'

export interface StandbyState {
  /** The server cannot be reached. */
  waits(): void
  sees(leader: LeaderSeen | null): void
  /** Null: no leader is known. */
  readonly leader: LeaderSeen | null
  /** One line, for /readyz. */
  readonly detail: string
}

export function createStandbyState(): StandbyState {
  let leader: LeaderSeen | null = null
  let detail = 'waiting for the store'
  return {
    waits() {
      leader = null
      detail = 'waiting for the store'
    },
    sees(seen) {
      leader = seen
      detail = seen === null ? 'standby: no controller leads' : `standby: ${seen.name} leads`
    },
    get leader() {
      return leader
    },
    get detail() {
      return detail
    },
  }
}
