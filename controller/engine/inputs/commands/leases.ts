/**
 * Leases: tasks without a command, which live while their client renews them. An expired lease ends as
 * cancelled.
 */
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import type { Answer, KeptLease } from '../../../model/command.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveTask } from '../../../state/facts.ts'
import { applyClientWants } from '../nodes/node-events.ts'
import { orderStop } from '../../apply/lifecycle/stops.ts'
import { finish } from '../../apply/lifecycle/transitions.ts'

/** Lifetime of a lease without renewal. */
export const TASK_LEASE_MS: DurationMs = 60_000
const LEASE_EXPIRED = 'lease_expired'

function isLease(task: LiveTask): boolean {
  return task.spec.command === null
}

/** @param busy whether it wants the GPU; null: its server reports that */
export function keepalive(c: Cluster, id: string, busy: boolean | null, now: Instant): Answer<KeptLease> {
  const task = c.tasks.get(id)
  if (task === undefined) return { ok: false, refusal: { code: 'not_found', what: 'task', id } }
  if (!isLease(task))
    return {
      ok: false,
      refusal: { code: 'conflict', detail: `task ${id} runs a command; only a lease can be renewed` },
    }
  if (task.placement?.stopping?.then === 'cancelled') {
    return {
      ok: false,
      refusal: { code: 'conflict', detail: `task ${id} is being stopped: ${task.placement.stopping.reason}` },
    }
  }
  c.leases.renew(task, now)
  applyClientWants(c, task, busy, now)
  return { ok: true, value: { task, expiresAt: c.leases.expiresAt(task) } }
}

/** Ends leases whose client has gone. Returns true if there were any. */
export function endExpiredLeases(c: Cluster, now: Instant): boolean {
  const expired = c.leases.takeExpired(now).filter((task) => c.tasks.get(task.spec.id) === task)
  for (const task of expired) {
    const { placement } = task
    if (placement === null || task.state === 'unreachable')
      finish(
        c,
        task,
        { state: 'cancelled', code: 'lease_expired', exitCode: null, reason: LEASE_EXPIRED },
        now,
      )
    else if (placement.stopping?.then !== 'cancelled') {
      orderStop(
        c,
        placement,
        { then: 'cancelled', reason: LEASE_EXPIRED, endReason: LEASE_EXPIRED, code: 'lease_expired' },
        now,
      )
    }
  }
  return expired.length > 0
}
