/**
 * Permissions at the broker for sweeps over machines. A worker takes jobs, reads their input, and writes
 * results. It cannot start a sweep, replace a scenario or trace, create or change a stream, or read results
 * of others.
 */
import type { BrokerRights } from '../../../protocol/broker-rights.ts'
import { DATA, DEAD, DEAD_SUBJECT, JOBS, WORKERS } from './sweep-subjects.ts'

/** `sweep` runs `headroom sim sweep --workers`, `worker` runs `headroom sim worker`. */
export type SweepIdentity = { readonly kind: 'sweep' } | { readonly kind: 'worker' }

const API = '$JS.API'
const OF_ANY_SWEEP = 'headroom.sweep.data.*'

export function sweepRights({ kind }: SweepIdentity, inbox: string): BrokerRights {
  const publish = kind === 'worker' ? WORKER_PUBLISHES : SWEEP_PUBLISHES
  return { publish, subscribe: [`${inbox}.>`], mayAnswer: false }
}

const WORKER_PUBLISHES = [
  `${API}.CONSUMER.INFO.${JOBS}.${WORKERS}`,
  `${API}.CONSUMER.MSG.NEXT.${JOBS}.${WORKERS}`,
  `$JS.ACK.${JOBS}.${WORKERS}.>`,
  `${API}.DIRECT.GET.${DATA}.${OF_ANY_SWEEP}.blob.>`,
  `${OF_ANY_SWEEP}.file.*.*`,
  `${OF_ANY_SWEEP}.result.*`,
  DEAD_SUBJECT,
]

const SWEEP_PUBLISHES = [
  ...[JOBS, DATA, DEAD].flatMap((stream) => [
    `${API}.STREAM.CREATE.${stream}`,
    `${API}.STREAM.UPDATE.${stream}`,
  ]),
  `${API}.STREAM.PURGE.${JOBS}`,
  `${API}.STREAM.PURGE.${DATA}`,
  `${API}.CONSUMER.DURABLE.CREATE.${JOBS}.${WORKERS}`,
  `${API}.CONSUMER.INFO.${JOBS}.${WORKERS}`,
  `${API}.CONSUMER.CREATE.${DATA}`,
  `${API}.CONSUMER.MSG.NEXT.${DATA}.*`,
  `$JS.ACK.${DATA}.>`,
  `${API}.DIRECT.GET.${DATA}.${OF_ANY_SWEEP}.file.>`,
  'headroom.sweep.job.*.*',
  `${OF_ANY_SWEEP}.blob.*.*`,
]
