import type { ReasonDetail, WaitExplanation } from '../../query/explain/explain.ts'
import type { WaitBody } from './schema.ts'
import { presentInstantOrNull } from '../http/instant.ts'

export function presentWait(explanation: WaitExplanation | null): WaitBody | null {
  if (explanation === null) return null
  return {
    ...presentReason(explanation.primary),
    sentence: explanation.sentence,
    retry_at: presentInstantOrNull(explanation.retryAt),
    queue_position: explanation.queuePosition,
    served_before: explanation.servedBefore,
    secondary: explanation.secondary.map(presentReason),
  }
}

function presentReason(detail: ReasonDetail): WaitBody['secondary'][number] {
  return {
    reason: detail.reason,
    node_ids: detail.nodeIds,
    node_count: detail.nodeCount,
    have_mib: detail.haveMib,
    need_mib: detail.needMib,
  }
}
