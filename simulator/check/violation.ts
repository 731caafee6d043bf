/** A broken assertion of a run. */
import type { Instant } from '../../protocol/units.ts'

export interface Violation {
  /** The assertion's name, or for `final` the path of the metric. */
  readonly assertion: string
  readonly at: Instant
  /** A sentence with the figures. */
  readonly detail: string
  readonly nodeId?: string
  readonly taskId?: string
}

/** Records a violation. The assertion's name is added by the provider of this function. */
export type Report = (detail: string, place?: { readonly nodeId?: string; readonly taskId?: string }) => void

export function describeViolation({ assertion, at, detail, nodeId, taskId }: Violation): string {
  const place = [taskId === undefined ? [] : `task ${taskId}`, nodeId === undefined ? [] : `node ${nodeId}`]
    .flat()
    .join(', ')
  return `${assertion} at ${new Date(at).toISOString()}${place === '' ? '' : ` (${place})`}: ${detail}`
}
