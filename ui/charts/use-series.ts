/** Requests series of a scope over the range of the page, and repeats the request while it is live. */
import { useQuery } from '@tanstack/solid-query'
import type { SeriesBody } from '../../controller/api/observe/series-schema.ts'
import { useCluster } from '../state/cluster.tsx'
import { useRange, useSpan } from '../state/range.ts'

const MAX_POINTS = 360
/** Interval of the controller's samples. */
const AGAIN_MS = 10_000

export function useSeries(names: readonly string[], scope: () => string = () => 'cluster') {
  const { api, now } = useCluster()
  const [range] = useRange()
  const span = useSpan()
  return useQuery(() => ({
    queryKey: ['series', scope(), names.join(','), span() ?? range()],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const { at, from, to } = span() ?? { at: null, from: range(), to: '' }
      const body = await api.get<SeriesBody>(
        '/series',
        { names: names.join(','), scope: scope(), from, to, max_points: MAX_POINTS },
        signal,
      )
      return at === null ? body : { ...body, marks: [...body.marks, markAt(at)] }
    },
    // The past does not change.
    refetchInterval: () => {
      const end = span()?.to
      return end !== undefined && Date.parse(end) < now() ? false : AGAIN_MS
    },
  }))
}

/** Marks the instant that the page was opened for. */
function markAt(at: string): SeriesBody['marks'][number] {
  const seconds = Date.parse(at) / 1000
  return { from: seconds, to: seconds, kind: 'config_changed', text: 'Selected instant' }
}
