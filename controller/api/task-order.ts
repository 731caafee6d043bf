/** In which order tasks are listed, and where a page of that order begins. */
import { byCodeUnits, firstDifference } from '../domain/order.ts'
import { invalidField } from './errors.ts'

export const TASK_SORTS = ['newest', 'oldest', 'priority', 'name'] as const
export type TaskSort = (typeof TASK_SORTS)[number]

/** What the orders compare. */
export interface TaskPosition {
  readonly seq: number
  readonly priority: number
  readonly name: string
}

/**
 * newest: latest submission first. oldest: earliest first. priority: P0 first, then earliest submission. name: by code units, then earliest
 * submission. The submission number makes each total.
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
}

/** The longest cursor: a name of 200 characters, each of up to 6 bytes in JSON and 4 more for 3 in base64. */
export const TASK_CURSOR_LIMIT = 2000

export function writeTaskCursor(sort: TaskSort, { seq, priority, name }: TaskPosition): string {
  return Buffer.from(JSON.stringify([sort, seq, priority, sort === 'name' ? name : ''])).toString('base64url')
}

/** @throws ApiProblem when the text is none of ours, or belongs to another order. */
export function readTaskCursor(sort: TaskSort, cursor: string): TaskPosition {
  const parts = partsOf(cursor)
  const [of, seq, priority, name] = parts
  const isOurs = Number.isSafeInteger(seq) && Number.isSafeInteger(priority) && typeof name === 'string'
  if (parts.length !== 4 || of !== sort || !isOurs) {
    throw invalidField('/cursor', 'query parameter cursor must be the next_cursor of an answer to the same query')
  }
  return { seq: seq as number, priority: priority as number, name }
}

function partsOf(cursor: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    return Array.isArray(parts) ? parts : []
  } catch {
    return []
  }
}
