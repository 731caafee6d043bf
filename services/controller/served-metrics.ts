/** Metrics of `headroom serve`: decisions, commits, messages, queues, the process. */
import { createEventMetrics } from '../../controller/api/metrics/event-metrics.ts'
import type { ValueFamily } from '../../controller/api/metrics/exposition.ts'
import { FAST_SECONDS, Histogram } from '../../controller/api/metrics/instruments.ts'
import { Metrics, byLabel, counted, counters, gauge, gauges } from '../../controller/api/metrics/metrics.ts'
import { measureProcess, type ProcessMetrics } from '../../controller/api/metrics/process-metrics.ts'
import type { Controller } from '../../controller/controller.ts'
import type { Succession } from '../../controller/adapters/postgres/standbys.ts'
import type { Event } from '../../controller/model/event.ts'

export interface ServedMetrics {
  readonly metrics: Metrics
  readonly process: ProcessMetrics
  /** For the controller's options. */
  onEvents(events: readonly Event[]): void
  /** For the store's options. */
  onCommit(ms: number, batches: number): void
  /** Sources that exist once the controller runs. */
  watch(sources: WatchedSources): void
}

interface WatchedSources {
  readonly controller: Controller
  /** Messages that the bus dropped, by reason. */
  readonly dropped: ReadonlyMap<string, number>
  readonly commitQueueDepth: () => number
  readonly diskFreeBytes: () => number | null
  /** Null: it is not known, or the controller is alone. */
  readonly succession: () => Succession | null
  /** Null: the controller has no lease. */
  readonly leaseAgeMs: () => number | null
  /** Null: nothing is recorded. */
  readonly recording: RecordingFigures | null
}

interface RecordingFigures {
  readonly isOpen: boolean
  readonly entries: number
  readonly writtenBytes: number
}

export function createServedMetrics(): ServedMetrics {
  const metrics = new Metrics()
  let controller: Controller | null = null
  const events = createEventMetrics(metrics, (id) => controller?.views.openTask(id))
  const commits = new Histogram({
    name: 'headroom_store_commit_seconds',
    help: 'One transaction of the store, until it is durable.',
    bounds: FAST_SECONDS,
  })
  const batches = new Histogram({
    name: 'headroom_store_commit_batches',
    help: 'Batches that became durable in one transaction.',
    bounds: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  })
  const decisions = new Histogram({
    name: 'headroom_scheduler_decision_seconds',
    help: 'One decision cycle: all inputs of one instant are decided together.',
    bounds: FAST_SECONDS,
  })
  metrics.add(commits, batches, decisions)
  return {
    metrics,
    process: measureProcess(metrics),
    onEvents: (list) => events.take(list),
    onCommit: (ms, count) => {
      commits.observe(ms / 1000)
      batches.observe(count)
    },
    watch: (sources) => {
      controller = sources.controller
      timeDecisions(sources.controller, decisions)
      addQueues(metrics, sources)
      addLeadership(metrics, sources)
    },
  }
}

function timeDecisions(controller: Controller, decisions: Histogram): void {
  let startedAt = 0
  controller.timeDecisions({
    start: () => {
      startedAt = performance.now()
    },
    stop: () => decisions.observe((performance.now() - startedAt) / 1000),
  })
}

function addQueues(
  metrics: Metrics,
  { controller, dropped, commitQueueDepth, diskFreeBytes, recording }: WatchedSources,
): void {
  metrics.add(
    gauge(
      'headroom_store_queue_batches',
      'Batches that wait for the current transaction to end.',
      commitQueueDepth,
    ),
    gauges('headroom_outbound_commands', 'Unanswered commands to nodes.', ['state'], function* () {
      const { inFlight, waiting } = controller.outboundDepth()
      yield* byLabel({ in_flight: inFlight, waiting })
    }),
    counters('headroom_messages_refused_total', 'Refused messages by reason.', ['reason'], function* () {
      const { refused, late } = controller.messages
      yield* byLabel({ ...Object.fromEntries(dropped), ...refused, late })
    }),
    gauge('headroom_data_free_bytes', 'Free space on the disk of CONTROLLER_DATA_DIR.', diskFreeBytes),
    gauge('headroom_recording_active', 'Inputs are recorded (1), or recording has stopped (0).', () =>
      recording === null ? null : recording.isOpen ? 1 : 0,
    ),
    counted(
      'headroom_recording_entries_total',
      'Entries of the recording.',
      () => recording?.entries ?? null,
    ),
    counted(
      'headroom_recording_written_bytes_total',
      'Bytes written by the recording.',
      () => recording?.writtenBytes ?? null,
    ),
  )
}

function addLeadership(metrics: Metrics, { controller, succession, leaseAgeMs }: WatchedSources): void {
  metrics.add(
    gauge('headroom_controller_leads', 'This controller leads (1), or is a standby (0).', () => 1),
    gauge('headroom_controller_epoch', 'Epoch of the leader.', () => controller.status.epoch),
    gauge(
      'headroom_standbys',
      'Standbys that could take over, seen in the last 10 s.',
      () => succession()?.standbys ?? null,
    ),
    gauge(
      'headroom_standby_lag_seconds',
      'Time since the standby that is furthest behind was up to date with the leader.',
      () => secondsOf(succession()?.lagMs ?? null),
    ),
    gauge(
      'headroom_lease_age_seconds',
      'Time since the database accepted a commit or heartbeat of the leader.',
      () => secondsOf(leaseAgeMs()),
    ),
    counted(
      'headroom_leader_terms_total',
      'Terms of all controllers of the store.',
      () => succession()?.terms ?? null,
    ),
  )
}

function secondsOf(ms: number | null): number | null {
  return ms === null ? null : ms / 1_000
}

export function uploadMetrics(bytes: () => number | null, maxBytes: number): readonly ValueFamily[] {
  return [
    gauge('headroom_uploads_bytes', 'Bytes of uploaded traces and scenarios on disk.', bytes),
    gauge(
      'headroom_uploads_limit_bytes',
      'Maximum size of uploaded traces and scenarios (CONTROLLER_UPLOADS_MAX_MIB).',
      () => maxBytes,
    ),
  ]
}
