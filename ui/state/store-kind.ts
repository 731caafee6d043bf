import { useQuery } from '@tanstack/solid-query'
import type { Accessor } from 'solid-js'
import type { VersionBody } from '../../controller/api/http/service-schema.ts'
import { useWorld } from '../api/world.ts'
import { useCluster } from './cluster.tsx'

/** The kind of the live controller's store; null: unknown, also while sign-in is needed. */
export function useStoreKind(): Accessor<VersionBody['store_kind']> {
  const { mode } = useWorld()
  const { api, feed } = useCluster()
  const version = useQuery(() => ({
    queryKey: ['version'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<VersionBody>('/version', {}, signal),
    // Requested again with each connection: another controller may listen at this address.
    enabled: mode === 'live' && feed.status() === 'live',
    staleTime: 0,
  }))
  return () => version.data?.store_kind ?? null
}
