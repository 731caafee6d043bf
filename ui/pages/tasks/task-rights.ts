/**
 * Why something cannot be done with a task as it stands, in words for a button that is disabled; null: it
 * can. The server decides all the same.
 */
import type { TaskBody } from '../../../controller/api/schema/task.ts'
import { isOpen } from '../../format/tasks.ts'

type State = Pick<TaskBody, 'state' | 'residency' | 'held'>

/** The part of a session that is asked. */
interface Asked {
  who(): { readonly caller: { readonly role: string; readonly name: string | null } | null } | null
  whyNot(least: 'submitter'): string | null
}

/** A submitter changes his own tasks only. */
export function whyNotOwn(session: Asked, { owner }: Pick<TaskBody, 'owner'>): string | null {
  const why = session.whyNot('submitter')
  const caller = session.who()?.caller
  if (why !== null || caller?.role !== 'submitter' || caller.name === owner) return why
  return `It is the task of ${owner ?? 'nobody who is known'}; the role submitter changes its own tasks only.`
}

export function whyNotPatch(task: State): string | null {
  return isOpen(task) ? null : `It is ${task.state}.`
}

export const whyNotCancel = whyNotPatch

export function whyNotHold(task: State): string | null {
  if (task.state !== 'pending')
    return isOpen(task) ? 'It is placed: only a pending task can be held.' : `It is ${task.state}.`
  return task.held ? 'It is held already.' : null
}

export function whyNotRelease(task: State): string | null {
  return task.held ? null : 'It is not held.'
}

export function whyNotSwapOut(task: State): string | null {
  return task.residency === 'resident' ? null : 'It is not resident.'
}

export function whyNotSwapIn(task: State): string | null {
  return task.residency === 'swapped_out' ? null : 'It is not swapped out.'
}
