/**
 * The first requests of the page at an address, except for the session. Pure; a test compares them with the
 * requests of the pages.
 */
import { taskListRequest, taskQueryOf } from './pages/tasks/task-filter.ts'
import { LIVE_API } from './api/early-responses.ts'
import { queryText } from './api/query-text.ts'

/** @param search with its question mark. Pages of a session have their own API and request nothing early. */
export function firstRequests(pathname: string, search: string): readonly string[] {
  if (/^\/simulator\/./.test(pathname)) return []
  const summary = `${LIVE_API}/summary`
  if (pathname !== '/tasks') return [summary]
  const query = taskQueryOf(Object.fromEntries(new URLSearchParams(search)))
  return [summary, `${LIVE_API}/tasks${queryText(taskListRequest(query))}`]
}
