/** Disk space of uploads in the data folder. */
import type { ValueFamily } from '../../controller/api/metrics/exposition.ts'
import { gauge } from '../../controller/api/metrics/metrics.ts'

export function uploadMetrics(bytes: () => number | null, maxBytes: number): readonly ValueFamily[] {
  return [
    gauge('headroom_uploads_bytes', 'Bytes of uploaded traces and scenarios on disk.', bytes),
    gauge(
      'headroom_uploads_limit_bytes',
      'Limit of these bytes (CONTROLLER_UPLOADS_MAX_MIB).',
      () => maxBytes,
    ),
  ]
}
