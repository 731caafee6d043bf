/** Renders each change that would place a task as one sentence. */
import type { Instant } from '../../../protocol/units.ts'
import { inMib, secondsUntil } from '../../model/words.ts'
import type { WouldFit } from './would-fit.ts'

export function wouldFitInWords(change: WouldFit, now: Instant): string {
  const fits = `It would fit ${change.node.name}`
  switch (change.change) {
    case 'overcommit': {
      const ofNode = 'overcommit_vram_percent of that node'
      const setting = change.scope === 'cluster' ? 'default_vram_overcommit_percent' : ofNode
      return `${fits} with ${setting} ${change.to} instead of ${change.from}.`
    }
    case 'reserve': {
      const whose = change.scope === 'cluster' ? '' : ' of that node'
      return `${fits} with safety_reserve_mib${whose} ${change.to} instead of ${change.from}.`
    }
    case 'vram':
      return `${fits} if it requested ${inMib(change.to)} instead of ${inMib(change.from)}.`
    case 'noswap':
      return `${fits} with noswap 0: it could then use overcommit headroom, and be swapped out.`
    case 'uncordon':
      return `${fits} if that node were uncordoned.`
    case 'groups':
      return change.group === null
        ? `${fits} if it targeted no group.`
        : `${fits} if it targeted group ${change.group}.`
    case 'task_ends':
      return `${fits} once ${change.task.spec.name} has ended there (${inMib(change.mib)}).`
    case 'victims_idle':
      return `${fits} in ${secondsUntil(change.at, now)}, if the victims do not use the GPU before then.`
  }
}

/** Returns the condition under which the change places the task; null: no condition. */
export function provisoOf({ entriesBefore }: WouldFit, tasksBefore: number): string | null {
  const others: string[] = []
  if (tasksBefore > 0)
    others.push(`the ${tasksBefore} ${tasksBefore === 1 ? 'task' : 'tasks'} before it in the queue`)
  if (entriesBefore > 0) others.push(`the ${entriesBefore} entries that wait for VRAM on that node`)
  return others.length === 0 ? null : `Provided that ${others.join(' and ')} do not take the VRAM first.`
}
