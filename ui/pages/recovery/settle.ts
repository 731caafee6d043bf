import { useQueryClient } from '@tanstack/solid-query'
import type { AttemptBody } from '../../../controller/api/tasks/attempt-schema.ts'
import { pathSegment } from '../../api/client.ts'
import { useCluster } from '../../state/cluster.tsx'

export interface SettleProps {
  readonly attempt: AttemptBody
  /** Why the action is not possible; null: it is possible. */
  readonly whyNot: string | null
  /** Called with a message about the result. */
  readonly onSettled: (words: string) => void
}

/**
 * Sends a decision about an attempt. It includes the node, because several nodes may report the same attempt.
 */
export function useSettle(): (attempt: AttemptBody, how: 'adopt' | 'stop', body?: object) => Promise<void> {
  const { api } = useCluster()
  const queries = useQueryClient()
  return async ({ task_id: taskId, attempt, node_id }, how, body = {}) => {
    await api.send('POST', `/attempts/${pathSegment(taskId)}/${attempt}/${how}`, {
      body: { ...body, node_id },
    })
    await queries.invalidateQueries({ queryKey: ['recovery'] })
  }
}
