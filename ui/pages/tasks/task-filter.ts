/** The query of the task list from the URL. Pure: invalid values are ignored. */
import type { TaskQuery } from '../../../controller/api/tasks/schema.ts'
import type { Query } from '../../api/query-text.ts'
import { WAIT_REASONS } from '../../format/reasons.ts'

/** The lists of the page; the first one is the default. */
export const LISTS = ['running', 'pending', 'succeeded', 'failed', 'cancelled', 'all'] as const
export type ListName = (typeof LISTS)[number]

export const SORTS = [
  { value: 'newest', name: 'newest first', isForFinal: true },
  { value: 'oldest', name: 'oldest first', isForFinal: true },
  { value: 'priority', name: 'priority, then oldest', isForFinal: false },
  { value: 'name', name: 'name', isForFinal: false },
  { value: 'starved_seconds', name: 'GPU time lost', isForFinal: false },
] as const

export const TEXT_FILTERS = ['q', 'node', 'group', 'owner', 'label'] as const
export type TextFilter = (typeof TEXT_FILTERS)[number]

const PAGE_ROWS = 100

type Search = Readonly<Record<string, string | readonly string[] | undefined>>

export interface TaskListQuery extends Pick<TaskQuery, 'priority' | 'reason' | 'without_owner' | TextFilter> {
  readonly state: ListName
  readonly sort: (typeof SORTS)[number]['value']
  readonly cursor: string | null
}

export function taskQueryOf(search: Search): TaskListQuery {
  const state = LISTS.find((list) => list === search['tab']) ?? 'running'
  const sort = sortsOf(state).find(({ value }) => value === search['sort'])?.value ?? firstSortOf(state)
  const priority = ([0, 1, 2, 3, 4] as const).find((each) => String(each) === search['priority'])
  const reason = WAIT_REASONS.find((each) => each === search['reason'])
  const texts = TEXT_FILTERS.flatMap((name) => {
    const value = textOf(search[name])
    return value === null ? [] : [[name, value] as const]
  })
  return {
    ...Object.fromEntries(texts),
    ...(priority === undefined ? {} : { priority }),
    ...(search['without_owner'] === 'true' && textOf(search['owner']) === null
      ? { without_owner: true }
      : {}),
    ...(reason === undefined || !canWait(state) ? {} : { reason }),
    state,
    sort,
    cursor: textOf(search['cursor']),
  }
}

/** The request for one page of the list. */
export function taskListRequest(asked: TaskListQuery): Query {
  return { ...asked, limit: PAGE_ROWS }
}

/** The request for all rows that match, which have one order. */
export function csvRequest({ sort: _sort, cursor: _cursor, ...filters }: TaskListQuery): Query {
  return filters
}

/** Final tasks have no wait reason. */
export function canWait(state: ListName): boolean {
  return state === 'running' || state === 'pending' || state === 'all'
}

/** Pending tasks begin with those that are considered first. */
function firstSortOf(state: ListName): TaskListQuery['sort'] {
  return state === 'pending' ? 'priority' : 'newest'
}

/** Final tasks are stored in the order of their submission and have no other order. */
export function sortsOf(state: ListName): readonly (typeof SORTS)[number][] {
  return state === 'running' || state === 'pending' ? SORTS : SORTS.filter(({ isForFinal }) => isForFinal)
}

export function isFiltered(query: TaskListQuery): boolean {
  return (
    query.priority !== undefined ||
    query.without_owner === true ||
    query.reason !== undefined ||
    TEXT_FILTERS.some((name) => query[name] !== undefined)
  )
}

function textOf(value: string | readonly string[] | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
