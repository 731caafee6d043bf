/** Knowledge of a standby about the store and the leader. */
import type { LeaderSeen } from '../../controller/adapters/postgres/messages.ts'

export type KnownLeader = Omit<LeaderSeen, 'seal'>

export interface StandbyState {
  /** The server cannot be reached. */
  waits(): void
  /** Null: no controller leads. */
  sees(leader: KnownLeader | null): void
  /** This controller leads now. */
  leads(): void
  /** Null: no leader is known. */
  readonly leader: KnownLeader | null
  /** One line, for /readyz. */
  readonly detail: string
  /** Resolves with the leader, or with null when no controller leads for this long. */
  leaderWithin(ms: number): Promise<KnownLeader | null>
  /** No other controller has led since; true also while none leads. */
  isLatest(leader: KnownLeader): boolean
  /** Calls `then` as soon as another controller leads instead of `leader`. Returns a way to forget it. */
  onReplaced(leader: KnownLeader, then: () => void): () => void
}

export function createStandbyState(own: Pick<KnownLeader, 'name' | 'url'>): StandbyState {
  let leader: KnownLeader | null = null
  let detail = 'waiting for the store'
  const waiting = new Set<(leader: KnownLeader) => void>()
  /** Also while no controller leads. */
  let latest: KnownLeader | null = null
  const watching = new Set<() => void>()
  const isLatest = ({ name, epoch }: KnownLeader): boolean => latest?.name === name && latest.epoch === epoch
  const set = (now: KnownLeader | null, why: string): void => {
    leader = now
    detail = why
    if (now === null) return
    if (!isLatest(now)) {
      latest = now
      for (const replaced of watching) replaced()
      watching.clear()
    }
    for (const done of waiting) done(now)
    waiting.clear()
  }
  return {
    waits: () => set(null, 'waiting for the store'),
    sees: (seen) => {
      // It was the leader before it was started again.
      const other = seen?.name === own.name ? null : seen
      if (other === null) set(null, 'standby: no controller leads')
      else if (other.url === '') set(null, `standby: ${other.name} is becoming the leader`)
      else set(other, `standby: ${other.name} leads`)
    },
    leads: () => set({ ...own, epoch: 0 }, 'this controller leads'),
    get leader() {
      return leader
    },
    get detail() {
      return detail
    },
    leaderWithin: (ms) =>
      leader !== null
        ? Promise.resolve(leader)
        : new Promise((resolve) => {
            const done = (now: KnownLeader | null): void => {
              clearTimeout(timer)
              waiting.delete(done)
              resolve(now)
            }
            const timer = setTimeout(() => done(null), ms)
            waiting.add(done)
          }),
    isLatest,
    onReplaced(of, then) {
      if (!isLatest(of)) {
        then()
        return () => {}
      }
      watching.add(then)
      return () => watching.delete(then)
    },
  }
}
