/** What uploads take of the data folder. */
import type { ValueFamily } from '../../controller/api/prometheus/exposition.ts'
import { gauge } from '../../controller/api/prometheus/metrics.ts'

export function uploadMetrics(bytes: () => number | null, maxBytes: number): readonly ValueFamily[] {
  return [
    gauge('headroom_uploads_bytes', 'What traces and scenarios that were sent take on disk.', bytes),
    gauge(
      'headroom_uploads_limit_bytes',
      'What they may take together (CONTROLLER_UPLOADS_MAX_MIB).',
      () => maxBytes,
    ),
  ]
}
