/**
 * What the page of an address asks for first, besides who sits before it. Pure; a test holds it equal to what
 * the pages ask for.
 */
import { taskListRequest, taskQueryOf } from '../pages/tasks/task-filter.ts'
import { LIVE_API } from './live-api.ts'
import { queryText } from './query-text.ts'

/**
 * @param search with its question mark. Sessions of the simulator have an interface of their own, which is
 *   asked for nothing ahead.
 */
export function firstRequests(pathname: string, search: string): readonly string[] {
  if (/^\/simulator\/./.test(pathname)) return []
  const summary = `${LIVE_API}/summary`
  if (pathname !== '/tasks') return [summary]
  const query = taskQueryOf(Object.fromEntries(new URLSearchParams(search)))
  return [summary, `${LIVE_API}/tasks${queryText(taskListRequest(query))}`]
}
