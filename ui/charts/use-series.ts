/** Asks for series of a scope over the range of the page, and again as time goes by. */
import { useQuery } from '@tanstack/solid-query'
import type { SeriesBody } from '../../controller/api/schema/series.ts'
import { useCluster } from '../state/cluster.tsx'
import { useRange } from '../state/range.ts'

const MAX_POINTS = 360
/** Readings are taken every ten seconds. */
const AGAIN_MS = 10_000

export function useSeries(names: readonly string[], scope: () => string = () => 'cluster') {
  const { api } = useCluster()
  const [range] = useRange()
  return useQuery(() => ({
    queryKey: ['series', scope(), names.join(','), range()],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<SeriesBody>('/series', { names: names.join(','), scope: scope(), from: range(), max_points: MAX_POINTS }, signal),
    refetchInterval: AGAIN_MS,
  }))
}
