import { useQuery, type UseQueryResult } from '@tanstack/solid-query'
import type { RecoveryBody } from '../../controller/api/tasks/attempt-schema.ts'
import { useCluster } from './cluster.tsx'

/** Compares the store with the events that the nodes know. @param isWanted false: nothing is requested */
export function useRecovery(isWanted: () => boolean = () => true): UseQueryResult<RecoveryBody> {
  const { api } = useCluster()
  return useQuery(() => ({
    queryKey: ['recovery', 'state'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<RecoveryBody>('/recovery', {}, signal),
    refetchInterval: 5_000,
    enabled: isWanted(),
  }))
}

/**
 * Returns a function that tells whether a node is ahead of the store. Without an alarm about such nodes
 * nothing is requested.
 */
export function useIsAhead(): (nodeId: string) => boolean {
  const { feed } = useCluster()
  const isBehind = (): boolean => feed.summary()?.alarms.some(({ code }) => code === 'STORE_BEHIND') === true
  const recovery = useRecovery(isBehind)
  return (nodeId) =>
    isBehind() && recovery.data?.nodes_ahead.some(({ node_id: id }) => id === nodeId) === true
}
