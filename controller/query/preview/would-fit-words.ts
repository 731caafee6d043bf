/** Renders each change that would place a task as one sentence. */
import type { Instant } from '../../../protocol/units.ts'
import { inMib, secondsUntil } from '../../model/words.ts'
import type { WouldFit } from './would-fit.ts'

export function wouldFitInWords(change: WouldFit, now: Instant): string {
  const fits = `It would fit on ${change.node.name}`
  switch (change.change) {
    case 'overcommit': {
      const [setting, where] =
        change.scope === 'cluster'
          ? ['default_vram_overcommit_percent', '']
          : ['overcommit_vram_percent', ' for that node']
      return `${fits} with ${setting} ${change.to} instead of ${change.from}${where}.`
    }
    case 'reserve': {
      const where = change.scope === 'cluster' ? '' : ' for that node'
      return `${fits} with safety_reserve_mib ${change.to} instead of ${change.from}${where}.`
    }
    case 'vram':
      return `${fits} if it requested ${inMib(change.to)} instead of ${inMib(change.from)}.`
    case 'noswap':
      return `${fits} with noswap 0: it could then use headroom and be swapped out.`
    case 'uncordon':
      return `${fits} if that node were uncordoned.`
    case 'groups':
      return change.group === null
        ? `${fits} if it targeted no group.`
        : `${fits} if it targeted group ${change.group}.`
    case 'task_ends':
      return `${fits} once ${change.task.spec.name}, which uses ${inMib(change.mib)} there, has ended.`
    case 'victims_idle':
      return `${fits} in ${secondsUntil(change.at, now)}, if the victims do not use the GPU before then.`
  }
}

/** Returns the condition under which the change places the task; null: no condition. */
export function provisoOf({ entriesBefore }: WouldFit, tasksBefore: number): string | null {
  const others: string[] = []
  if (tasksBefore > 0)
    others.push(`the ${tasksBefore} ${tasksBefore === 1 ? 'task' : 'tasks'} before it in the queue`)
  if (entriesBefore > 0)
    others.push(
      `the ${entriesBefore} ${entriesBefore === 1 ? 'entry' : 'entries'} waiting for VRAM on that node`,
    )
  return others.length === 0
    ? null
    : `This assumes that the VRAM is not taken first by ${others.join(' and ')}.`
}
