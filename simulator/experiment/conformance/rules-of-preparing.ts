/** Preparing a start (docs/protocol.md, "Preparing"), for servers with this feature. */
import type { CommandResult } from '../../../protocol/messages.ts'
import type { PreparationReport } from '../../../protocol/preparing.ts'
import type { Examiner, Forged } from './examiner.ts'
import type { Rule } from './rule.ts'
import { ended, hasFinished, newTask, said, SOON_MS, start } from './orders.ts'

/** A name that no registry serves (RFC 6761): a preparation may fail, and it must be listed then too. */
const IMAGE = 'conformance.invalid/none:1'
const NO_SUCH_MANIFEST = '0'.repeat(64)

export const PREPARING_RULES: readonly Rule[] = [
  {
    rule: 'Prepare',
    feature: 'prepare',
    claim: 'a preparation is listed once, whatever is repeated, and no longer once a stop list names it',
    async examine(e) {
      const taskId = newTask(e)
      for (const which of ['a preparation', 'its repeat']) {
        const answer = await prepare(e, taskId)
        if (answer?.outcome !== 'accepted') return `${which} was answered ${said(answer)}`
      }
      if (!(await e.until(() => listed(e, taskId).length > 0, SOON_MS)))
        return `no snapshot lists it within ${SOON_MS / 1000} s`
      const reports = listed(e, taskId)
      if (reports.length > 1) return `a snapshot lists it ${reports.length} times`
      if (reports.some(({ state, start_refused: why }) => (state === 'failed') !== (why !== undefined)))
        return 'start_refused must say why a preparation failed, and be absent otherwise'
      e.stop = [{ task_id: taskId, attempt: 1 }]
      const isForgotten = await e.until(() => listed(e, taskId).length === 0, SOON_MS)
      e.stop = []
      return isForgotten ? null : `it is still listed ${SOON_MS / 1000} s after a stop list named it`
    },
  },
  {
    rule: 'Prepare',
    feature: 'prepare',
    claim: 'a preparation burns no attempt: it starts, and is listed as a preparation no more',
    async examine(e) {
      const taskId = newTask(e)
      const answer = await prepare(e, taskId)
      if (answer?.outcome !== 'accepted') return `a preparation was answered ${said(answer)}`
      await e.until(() => listed(e, taskId).length > 0, SOON_MS)
      if (e.snapshot?.body.tasks.some(({ task_id: id }) => id === taskId) === true)
        return 'it is listed as an attempt that runs'
      const started = await start(e, taskId, 1)
      if (started?.outcome !== 'accepted') return `the start of its attempt was answered ${said(started)}`
      const isLeft = !(await e.until(() => listed(e, taskId).length === 0, SOON_MS))
      // A start that was refused has ended.
      const failure = hasFinished(e, taskId, 1) ? null : await ended(e, taskId)
      return isLeft ? 'it is still listed as a preparation while its attempt runs' : failure
    },
  },
  {
    rule: 'Prepare',
    feature: 'prepare',
    claim: 'an older controller, a command for another boot and one past its time prepare nothing',
    async examine(e) {
      const forgeries: readonly (readonly [CommandResult['reason'], Forged])[] = [
        ['stale_epoch', { epoch: e.epoch - 1 }],
        ['other_boot', { boot: { counter: e.snapshot?.boot.counter ?? 0, random: 'another' } }],
        ['expired', { validUntilMono: Math.max(0, (e.snapshot?.sentMono ?? 0) - 1) }],
      ]
      const taskIds: string[] = []
      for (const [reason, forged] of forgeries) {
        const taskId = newTask(e)
        taskIds.push(taskId)
        const answer = await prepare(e, taskId, forged)
        if (answer?.outcome !== 'refused' || answer.reason !== reason)
          return `instead of ${reason} it was answered ${said(answer)}`
      }
      await e.pass(2 * e.settings.heartbeat_ms)
      return taskIds.every((id) => listed(e, id).length === 0) ? null : 'a snapshot lists one of them'
    },
  },
]

function prepare(e: Examiner, taskId: string, forged: Forged = {}): Promise<CommandResult | null> {
  const what = e.features.includes('image') ? { image: IMAGE } : { workdir: NO_SUCH_MANIFEST }
  return e.order({ op: 'prepare', task_id: taskId, attempt: 1, ...what }, forged)
}

function listed(e: Examiner, taskId: string): readonly PreparationReport[] {
  return (e.snapshot?.body.preparing ?? []).filter(({ task_id: id }) => id === taskId)
}
