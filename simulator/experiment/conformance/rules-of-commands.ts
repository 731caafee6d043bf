/** Which commands are obeyed, and the answers to the others (R3, R7). */
import type { CommandResult } from '../../../protocol/messages.ts'
import type { Rule } from './rule.ts'
import type { Examiner, Forged } from './examiner.ts'
import { ended, newTask, running, said, start, stop } from './orders.ts'

/**
 * A start that must not be obeyed, and whose attempt is then burned: the same start, now correct, is answered
 * `never_seen`.
 */
function refused(claim: string, reason: CommandResult['reason'], forged: (e: Examiner) => Forged): Rule {
  return {
    rule: 'R3',
    claim,
    async examine(e) {
      const taskId = newTask(e)
      const first = await start(e, taskId, 1, {}, forged(e))
      if (first?.outcome !== 'refused' || first.reason !== reason)
        return `the start was answered ${said(first)}`
      const again = await start(e, taskId, 1)
      return again?.outcome === 'never_seen'
        ? null
        : `the same attempt, sent again in order, was answered ${said(again)}`
    },
  }
}

export const COMMAND_RULES: readonly Rule[] = [
  refused('an older controller is not obeyed', 'stale_epoch', (e) => ({ epoch: e.epoch - 1 })),
  refused('a command for another boot is not obeyed', 'other_boot', (e) => ({
    boot: { counter: e.snapshot?.boot.counter ?? 0, random: 'another' },
  })),
  refused('a command past its time on the server’s own clock is not obeyed', 'expired', (e) => ({
    validUntilMono: Math.max(0, (e.snapshot?.sentMono ?? 0) - 1),
  })),
  {
    rule: 'R3',
    claim: 'a GPU that is not there, and more memory than there is, are refused',
    async examine(e) {
      const [index, tooMuch] = [
        e.snapshot?.body.gpus.length ?? 0,
        (e.snapshot?.body.gpus[0]?.physical_mib ?? 0) + 1,
      ]
      const missing = index > 15 ? null : await start(e, newTask(e), 1, { gpus: [index] })
      if (missing !== null && missing.reason !== 'unknown_gpu')
        return `a start on GPU ${index} was answered ${said(missing)}`
      const large = await start(e, newTask(e), 1, { vram_mib: tooMuch })
      return large?.reason === 'no_vram' ? null : `a start with ${tooMuch} MiB was answered ${said(large)}`
    },
  },
  {
    rule: 'R7',
    claim: 'a duplicate start is answered `running` and starts nothing',
    async examine(e) {
      const task = await running(e)
      if (typeof task === 'string') return task
      const again = await start(e, task.taskId, 1)
      if (again?.outcome !== 'running') return `the duplicate was answered ${said(again)}`
      const starts = e.eventsOf(task.taskId, 1).filter((event) => event.kind === 'started').length
      return (
        (await ended(e, task.taskId)) ?? (starts === 1 ? null : `it was reported as started ${starts} times`)
      )
    },
  },
  {
    rule: 'R3',
    claim: 'a task runs in one attempt at a time, and never in an older one',
    async examine(e) {
      const task = await running(e)
      if (typeof task === 'string') return task
      const next = await start(e, task.taskId, 3)
      if (next?.outcome !== 'refused' || next.reason !== 'old_attempt')
        return `attempt 3 while attempt 1 runs was answered ${said(next)}`
      const failure = await ended(e, task.taskId)
      if (failure !== null) return failure
      const older = await start(e, task.taskId, 2)
      return older?.outcome === 'accepted' || older?.outcome === 'running'
        ? `attempt 2 after attempt 3 was answered ${said(older)}`
        : null
    },
  },
  {
    rule: 'R7',
    claim: 'asked about an attempt: never_seen if it was not, gone when its end is acknowledged',
    async examine(e) {
      const unknown = await stop(e, newTask(e), 1)
      if (unknown?.outcome !== 'never_seen')
        return `a stop of an unknown attempt was answered ${said(unknown)}`
      const task = await running(e)
      if (typeof task === 'string') return task
      const failure = await ended(e, task.taskId)
      if (failure !== null) return failure
      const isForgotten = await e.until(
        () => e.snapshot?.body.finished_unacked.length === 0,
        10 * e.settings.heartbeat_ms,
      )
      if (!isForgotten) return 'an end that was acknowledged is still in its snapshots'
      const gone = await stop(e, task.taskId, 1)
      return gone?.outcome === 'gone'
        ? null
        : `a stop of an attempt that has ended was answered ${said(gone)}`
    },
  },
  {
    rule: 'R7',
    claim: 'a stop that comes before its start burns the attempt',
    async examine(e) {
      const taskId = newTask(e)
      await stop(e, taskId, 1)
      const late = await start(e, taskId, 1)
      return late?.outcome === 'never_seen' ? null : `the start that came after was answered ${said(late)}`
    },
  },
]
