/**
 * Tasks, newest submission first, from two sources that are one list to the reader: open ones in memory, final ones in the store.
 * A page starts below a submission number, so tasks that arrive meanwhile shift nothing.
 */
import { isFinal, listOf, type Task, type TaskState } from '../domain/task.ts'
import type { TaskCounts, Views } from '../engine/views.ts'
import type { TaskRecord } from '../ports/store.ts'
import { presentTask, presentTaskRecord } from './present/task.ts'
import { TASK_STATES, type TaskBody, type TaskQuery } from './schema/task.ts'

export interface TaskFilter extends Pick<TaskQuery, 'priority' | 'node' | 'group' | 'owner' | 'q'> {
  readonly states: readonly TaskState[]
}

export interface TaskPage {
  readonly items: readonly TaskBody[]
  /** The submission number below which the next page starts; null on the last page. */
  readonly nextBefore: number | null
  /** null when final tasks are filtered by something the store does not count. */
  readonly total: number | null
}

/** A filter on final tasks that the store does not know is applied to at most this many of its pages, then the page ends early. */
const STORE_PAGES = 10
const STORE_PAGE_SIZE = 200

/** Which exact states a `state` parameter means: a list of the specification, an exact state, or all. */
export function statesOf(state: TaskQuery['state']): readonly TaskState[] {
  if (state === undefined || state === 'all') return TASK_STATES
  if (state === 'running' || state === 'pending' || state === 'completed') return TASK_STATES.filter((one) => listOf(one) === state)
  return [state]
}

export async function listTasks(views: Views, filter: TaskFilter, before: number | null, limit: number): Promise<TaskPage> {
  const ceiling = before ?? Infinity
  const open = newestOpen(views, filter, ceiling, limit + 1)
  const shownOpen = open.newest.map((task) => presentTask(task, views))
  const final = await newestFinal(views, filter, ceiling, limit + 1)
  const shown = mergeNewestFirst(shownOpen, final.newest.map(presentTaskRecord)).filter((task) => task.seq >= final.reach)
  const items = shown.slice(0, limit)
  const hasMore = shown.length > limit
  return {
    items,
    nextBefore: hasMore ? (items.at(-1)?.seq ?? null) : final.reach > 0 ? final.reach : null,
    total: totalOf(views.counts(), filter, open.total),
  }
}

interface OpenTasks {
  /** Newest first, at most as many as asked for. */
  readonly newest: readonly Task[]
  /** How many match, on all pages. */
  readonly total: number
}

function newestOpen(views: Views, filter: TaskFilter, ceiling: number, limit: number): OpenTasks {
  if (filter.states.every(isFinal)) return { newest: [], total: 0 }
  let total = 0
  let newest: Task[] = []
  for (const task of views.openTasks()) {
    if (!matches(task, filter)) continue
    total += 1
    if (task.spec.seq >= ceiling) continue
    newest.push(task)
    if (newest.length >= 4 * limit) newest = newest.slice(-limit)
  }
  return { newest: newest.slice(-limit).reverse(), total }
}

function matches(task: Task, { states, priority, node, group, owner, q }: TaskFilter): boolean {
  return (
    states.includes(task.state) &&
    (priority === undefined || task.spec.priority === priority) &&
    (node === undefined || task.placement?.node.id === node) &&
    (group === undefined || task.spec.groups.includes(group)) &&
    (owner === undefined || task.spec.owner === owner) &&
    (q === undefined || task.spec.name.includes(q))
  )
}

interface FinalTasks {
  readonly newest: readonly TaskRecord[]
  /** Everything from this submission number up has been looked at; 0 when nothing is left below. */
  readonly reach: number
}

async function newestFinal(views: Views, filter: TaskFilter, ceiling: number, limit: number): Promise<FinalTasks> {
  const states = filter.states.filter(isFinal)
  // A final task sits on no node, so a filter by node leaves none.
  if (states.length === 0 || filter.node !== undefined) return { newest: [], reach: 0 }
  const isSifted = filter.priority !== undefined || filter.group !== undefined
  const pageSize = isSifted ? STORE_PAGE_SIZE : limit
  const newest: TaskRecord[] = []
  let beforeSeq = Number.isFinite(ceiling) ? ceiling : null
  for (let pages = 0; pages < STORE_PAGES; pages += 1) {
    const query = { states, owner: filter.owner ?? null, nameContains: filter.q ?? null, beforeSeq, limit: pageSize }
    const records = await views.stored.finishedTasks(query)
    newest.push(...records.filter((record) => sifts(record, filter)))
    beforeSeq = records.at(-1)?.seq ?? beforeSeq
    if (records.length < pageSize) return { newest: newest.slice(0, limit), reach: 0 }
    if (newest.length >= limit) return { newest: newest.slice(0, limit), reach: 0 }
  }
  return { newest, reach: beforeSeq ?? 0 }
}

function sifts(record: TaskRecord, { priority, group }: TaskFilter): boolean {
  return (priority === undefined || record.priority === priority) && (group === undefined || record.groups.includes(group))
}

/** Both lists are newest first. A task that became final between the two looks is in both: the store's word counts. */
function mergeNewestFirst(open: readonly TaskBody[], final: readonly TaskBody[]): readonly TaskBody[] {
  const finished = new Set(final.map((task) => task.id))
  return [...open.filter((task) => !finished.has(task.id)), ...final].sort((a, b) => b.seq - a.seq)
}

function totalOf(counts: TaskCounts, filter: TaskFilter, open: number): number | null {
  const finalStates = filter.states.filter(isFinal)
  if (finalStates.length === 0 || filter.node !== undefined) return open
  const isFiltered = [filter.priority, filter.group, filter.owner, filter.q].some((value) => value !== undefined)
  return isFiltered ? null : finalStates.reduce((sum, state) => sum + counts[state], open)
}
