/** What a run did that it must not, or did not do that it must. */
import type { Instant } from '../../protocol/units.ts'

export interface Violation {
  /** The assertion's name, or for `final` the path of the metric. */
  readonly assertion: string
  readonly at: Instant
  /** One sentence with the figures. */
  readonly detail: string
  readonly nodeId?: string
  readonly taskId?: string
}

/** Takes a violation down; what it is called is known to whoever gave it out. */
export type Report = (detail: string, place?: { readonly nodeId?: string; readonly taskId?: string }) => void

export function describeViolation({ assertion, at, detail, nodeId, taskId }: Violation): string {
  const place = [taskId === undefined ? [] : `task ${taskId}`, nodeId === undefined ? [] : `node ${nodeId}`]
    .flat()
    .join(', ')
  return `${assertion} at ${new Date(at).toISOString()}${place === '' ? '' : ` (${place})`}: ${detail}`
}
