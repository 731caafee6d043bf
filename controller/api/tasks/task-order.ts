/** In which order tasks are listed, and where a page of that order begins. */
import { byCodeUnits, firstDifference } from '../../structures/order.ts'
import type { Task } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import { starvedSeconds } from '../../metrics/starvation.ts'
import { invalidCursor, readCursorParts, writeCursorParts } from '../http/cursor.ts'

export const TASK_SORTS = ['newest', 'oldest', 'priority', 'name', 'starved_seconds'] as const
export type TaskSort = (typeof TASK_SORTS)[number]

/** The values that the orders compare. */
export interface TaskPosition {
  readonly seq: number
  readonly priority: number
  readonly name: string
  /** GPU time wanted and not given so far; compared in its own order only. */
  readonly starved_seconds: number
}

/** Where an open task stands in an order. */
export function positionOf(task: Task, sort: TaskSort, views: Pick<Views, 'taskCounters'>): TaskPosition {
  const { seq, priority, name } = task.spec
  return {
    seq,
    priority,
    name,
    starved_seconds: sort === 'starved_seconds' ? starvedSeconds(views.taskCounters(task)) : 0,
  }
}

/**
 * newest: latest submission first. oldest: earliest first. priority: P0 first, then earliest submission.
 * name: by code units, then earliest submission. starved_seconds: most GPU time wanted and not given first,
 * then earliest submission. The submission number makes each total.
 */
export const TASK_ORDERS: Readonly<Record<TaskSort, (a: TaskPosition, b: TaskPosition) => number>> = {
  newest: (a, b) => b.seq - a.seq,
  oldest: (a, b) => a.seq - b.seq,
  priority: firstDifference<TaskPosition>(
    (a, b) => a.priority - b.priority,
    (a, b) => a.seq - b.seq,
  ),
  name: firstDifference<TaskPosition>(
    (a, b) => byCodeUnits(a.name, b.name),
    (a, b) => a.seq - b.seq,
  ),
  starved_seconds: firstDifference<TaskPosition>(
    (a, b) => b.starved_seconds - a.starved_seconds,
    (a, b) => a.seq - b.seq,
  ),
}

export function writeTaskCursor(
  sort: TaskSort,
  { seq, priority, name, starved_seconds: starved }: TaskPosition,
): string {
  const key = sort === 'name' ? name : sort === 'starved_seconds' ? starved : ''
  return writeCursorParts([sort, seq, priority, key])
}

/** @throws ApiProblem when the text is invalid or belongs to another order. */
export function readTaskCursor(sort: TaskSort, cursor: string): TaskPosition {
  const parts = readCursorParts(cursor)
  const [of, seq, priority, key] = parts
  const isKey = sort === 'starved_seconds' ? Number.isFinite(key) : typeof key === 'string'
  const isOurs = Number.isSafeInteger(seq) && Number.isSafeInteger(priority) && isKey
  if (parts.length !== 4 || of !== sort || !isOurs) throw invalidCursor()
  const position = { seq: seq as number, priority: priority as number }
  return typeof key === 'string'
    ? { ...position, name: key, starved_seconds: 0 }
    : { ...position, name: '', starved_seconds: key as number }
}
