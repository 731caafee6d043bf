import { notReady, type LeaderView } from '../../ports/handover.ts'
import type { LeaderBody } from './schema.ts'

export function presentLeader({ leader, epoch, standbys }: LeaderView): LeaderBody {
  return {
    leader: leader === null ? null : { name: leader.name, url: leader.url === '' ? null : leader.url },
    epoch,
    standbys: standbys.map((standby) => ({
      ...{ name: standby.name, url: standby.url, version: standby.version, may_lead: standby.mayLead },
      ...{ seen_ms_ago: standby.ageMs, lag_ms: standby.lagMs, not_ready: notReady(standby) },
    })),
  }
}
