import { freshnessOf, type Freshness } from '../api/freshness.ts'
import { now, useCluster } from './cluster.tsx'

export function useFreshness(): () => Freshness {
  const { feed } = useCluster()
  return () => freshnessOf(feed.status(), feed.heardAt(), now())
}
