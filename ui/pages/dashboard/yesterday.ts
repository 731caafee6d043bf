/** The figures of the same hour yesterday, for trends. */
import { useQuery } from '@tanstack/solid-query'
import type { SeriesBody } from '../../../controller/api/observe/series-schema.ts'
import { useCluster } from '../../state/cluster.tsx'

const NAMES = ['utilization_percent', 'starvation_percent', 'tasks_pending'] as const
type Name = (typeof NAMES)[number]
const AGAIN_MS = 300_000

/** null: unknown, such as before the first day is over. */
export function useYesterday(): () => Readonly<Record<Name, number | null>> | undefined {
  const { api } = useCluster()
  const query = useQuery(() => ({
    queryKey: ['yesterday'],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const asked = { names: NAMES.join(','), from: '-25h', to: '-24h', max_points: 1 }
      const { series } = await api.get<SeriesBody>('/series', asked, signal)
      const of = (name: Name): number | null => series.find((one) => one.name === name)?.values[0] ?? null
      return Object.fromEntries(NAMES.map((name) => [name, of(name)])) as Record<Name, number | null>
    },
    staleTime: AGAIN_MS,
    refetchInterval: AGAIN_MS,
  }))
  return () => query.data
}
