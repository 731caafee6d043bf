import type { Instant } from '../../protocol/units.ts'
import type { WaitExplanation } from '../scheduler/explain.ts'
import type { Cluster } from './cluster.ts'
import type { LiveTask } from './live.ts'

export function explainTask(_c: Cluster, _task: LiveTask, _now: Instant): WaitExplanation | null {
  return null
}
