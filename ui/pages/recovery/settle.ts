import { useQueryClient } from '@tanstack/solid-query'
import type { AttemptBody } from '../../../controller/api/schema/attempt.ts'
import { part } from '../../api/client.ts'
import { useCluster } from '../../state/cluster.tsx'

export interface SettleProps {
  readonly attempt: AttemptBody
  /** Why it cannot be settled; null: it can. */
  readonly whyNot: string | null
  /** Hears what was done, in words. */
  readonly onSettled: (words: string) => void
}

/** Sends a decision about an attempt; the node is named, as several may state the same attempt. */
export function useSettle(): (attempt: AttemptBody, how: 'adopt' | 'stop', body?: object) => Promise<void> {
  const { api } = useCluster()
  const queries = useQueryClient()
  return async ({ task_id: taskId, attempt, node_id }, how, body = {}) => {
    await api.send('POST', `/attempts/${part(taskId)}/${attempt}/${how}`, { body: { ...body, node_id } })
    await queries.invalidateQueries({ queryKey: ['recovery'] })
  }
}
