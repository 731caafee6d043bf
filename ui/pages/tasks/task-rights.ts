/**
 * Why an action is not possible for a task, as the text of a disabled button; null: it is possible. The
 * server checks again.
 */
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { isOpen } from '../../format/tasks.ts'

type State = Pick<TaskBody, 'state' | 'residency' | 'held'>

/** The part of a session that is used here. */
interface SessionPart {
  body(): { readonly caller: { readonly role: string; readonly name: string | null } | null } | null
  whyNot(required: 'submitter'): string | null
}

/** A submitter changes only their own tasks. */
export function whyNotOwn(session: SessionPart, { owner }: Pick<TaskBody, 'owner'>): string | null {
  const why = session.whyNot('submitter')
  const caller = session.body()?.caller
  if (why !== null || caller?.role !== 'submitter' || caller.name === owner) return why
  return (
    `This task belongs to ${owner ?? 'an unknown user'}. ` +
    'With role submitter, you can change only your own tasks.'
  )
}

export function whyNotPatch(task: State): string | null {
  return isOpen(task) ? null : `The task is already ${task.state}.`
}

export const whyNotCancel = whyNotPatch

export function whyNotHold(task: State): string | null {
  if (task.state !== 'pending')
    return isOpen(task) ? 'Only pending tasks can be put on hold.' : `The task is already ${task.state}.`
  return task.held ? 'The task is already on hold.' : null
}

export function whyNotRelease(task: State): string | null {
  return task.held ? null : 'The task is not on hold.'
}

export function whyNotSwapOut(task: State): string | null {
  return task.residency === 'resident' ? null : 'The task is not resident.'
}

export function whyNotSwapIn(task: State): string | null {
  return task.residency === 'swapped_out' ? null : 'The task is not swapped out.'
}
