/**
 * Metrics of the cluster, read from the views on each request. Each costs one pass over nodes or open tasks.
 */
import type { Node } from '../../model/placement.ts'
import type { TaskState, TaskIdentityKind } from '../../../protocol/units.ts'
import { resolveOvercommit } from '../../model/vram.ts'
import { TWIN_METRICS, type Twin } from '../../ports/twin.ts'
import { ALARM_CODES } from '../../query/alarms.ts'
import type { Views } from '../../query/views.ts'
import type { SeriesWindow } from '../../series/recent-window.ts'
import type { Series } from '../../series/series.ts'
import type { PendingByReason } from '../observe/pending-reasons.ts'
import type { Sample } from './exposition.ts'
import { byLabel, counted, counters, gauge, gauges, type Metrics } from './metrics.ts'
import { PRIORITIES } from '../../../protocol/units.ts'

/**
 * Maximum number of nodes with separate series: the first by registration, so that a series remains once it
 * exists.
 */
const MAX_NODES_WITH_SERIES = 2_000

const US_PER_S = 1_000_000
const MIB_BYTES = 1_048_576
const OPEN_STATES = ['pending', 'assigned', 'running', 'unreachable'] as const satisfies readonly TaskState[]

interface ClusterSources {
  readonly views: Views
  readonly series: Series
  /** A simulated fleet sends no heartbeats without changes, so their age is meaningless. */
  readonly fleet: 'simulated' | 'live'
  readonly pendingReasons: () => PendingByReason
}

/** Identities that nodes report; all others count as `unknown`. */
const TASK_IDENTITIES: readonly TaskIdentityKind[] = ['uid_per_attempt', 'task_user', 'root', 'server_user']

export function addClusterMetrics(metrics: Metrics, sources: ClusterSources): void {
  const { views, series, fleet } = sources
  addSharing(metrics, views, series)
  addTasks(metrics, sources)
  addVram(metrics, views)
  addNodes(metrics, views, fleet)
  addAlarms(metrics, views)
}

function addAlarms(metrics: Metrics, views: Views): void {
  metrics.add(
    gauges('headroom_alarm', '1 while the alarm is active, 0 otherwise.', ['alarm'], function* () {
      const held = new Set(views.alarms().map(({ code }) => code))
      for (const code of ALARM_CODES) yield { labels: [code], value: held.has(code) ? 1 : 0 }
    }),
  )
}

function addSharing(metrics: Metrics, views: Views, series: Series): void {
  const inWindow = (figure: (window: SeriesWindow) => number | null): number | null => {
    // A reading visits every GPU, and is taken every few seconds anyway.
    if (series.lastMinute() === null) series.take()
    const window = series.lastMinute()
    return window === null ? null : figure(window)
  }
  const utilization = (): number | null =>
    inWindow(({ counters, knownUs }) => (knownUs === 0 ? null : counters.busy / knownUs))
  metrics.add(
    gauge(
      'headroom_gpu_utilization_ratio',
      'Share of GPU time with at least one kernel running, over all GPUs that are up, in the last minute.',
      utilization,
    ),
    gauges(
      'headroom_starvation_ratio',
      'Share of wanted GPU time that was not served in the last minute; the parts add up.',
      ['scope', 'part'],
      function* () {
        for (const part of ['queue', 'swap', 'compute'] as const) {
          const value = inWindow(({ counters }) =>
            counters.demand === 0 ? 0 : counters[part] / counters.demand,
          )
          if (value !== null) yield { labels: ['cluster', part], value }
        }
      },
    ),
    counted(
      'headroom_gpu_busy_seconds_total',
      'GPU time with at least one kernel running.',
      () => views.clusterCounters().busy / US_PER_S,
    ),
    counters(
      'headroom_gpu_demand_seconds_total',
      'GPU time that tasks wanted, by outcome.',
      ['part'],
      function* () {
        const { served, queue, swap, compute } = views.clusterCounters()
        yield* byLabel({
          served: served / US_PER_S,
          queue: queue / US_PER_S,
          swap: swap / US_PER_S,
          compute: compute / US_PER_S,
        })
      },
    ),
    gauge(
      'headroom_swap_fairness_jain',
      "Jain's index of swap-outs over comparable tasks, since the start; 1 is even.",
      () => views.swapJain(),
    ),
  )
}

function addTasks(metrics: Metrics, { views, pendingReasons }: ClusterSources): void {
  metrics.add(
    gauges('headroom_tasks', 'Open tasks.', ['state', 'priority'], () => openTasks(views)),
    gauge(
      'headroom_tasks_stopping',
      'Tasks that are being stopped and whose end has not been reported yet.',
      () => views.stoppingCount(),
    ),
    counters(
      'headroom_tasks_finished_total',
      'Tasks that have ended, as far back as the store records them.',
      ['state'],
      function* () {
        const { completed, failed, cancelled, lost } = views.counts()
        yield* byLabel({ completed, failed, cancelled, lost })
      },
    ),
    gauges(
      'headroom_tasks_pending',
      'Pending tasks by what they wait for; scaled up from a sample when there are many.',
      ['reason'],
      function* () {
        for (const { reason, tasks } of pendingReasons().reasons) yield { labels: [reason], value: tasks }
      },
    ),
    counters('headroom_swapped_bytes_total', 'Bytes moved by swaps.', ['direction'], function* () {
      const { swappedOutMibTotal, swappedInMibTotal } = views.totals()
      yield* byLabel({ out: swappedOutMibTotal * MIB_BYTES, in: swappedInMibTotal * MIB_BYTES })
    }),
  )
}

function* openTasks(views: Views): Generator<Sample> {
  const counts = new Map<TaskState, number[]>(OPEN_STATES.map((state) => [state, PRIORITIES.map(() => 0)]))
  for (const task of views.openTasks()) {
    const ofState = counts.get(task.state)
    if (ofState !== undefined) ofState[task.spec.priority] = (ofState[task.spec.priority] ?? 0) + 1
  }
  for (const [state, ofState] of counts)
    for (const priority of PRIORITIES)
      yield { labels: [state, `P${priority}`], value: ofState[priority] ?? 0 }
}

function addVram(metrics: Metrics, views: Views): void {
  metrics.add(
    gauges('headroom_vram_bytes', 'VRAM of all GPUs by layer; the layers overlap.', ['kind'], function* () {
      const totals = views.totals()
      yield* byLabel({
        physical: totals.physicalMib * MIB_BYTES,
        resident: totals.residentMib * MIB_BYTES,
        foreign: totals.foreignMib * MIB_BYTES,
        committed: totals.committedMib * MIB_BYTES,
        schedulable: totals.effectiveSchedulableMib * MIB_BYTES,
        commit_limit: totals.commitLimitMib * MIB_BYTES,
        swapped: totals.swappedMib * MIB_BYTES,
      })
    }),
  )
}

function addNodes(metrics: Metrics, views: Views, fleet: ClusterSources['fleet']): void {
  metrics.add(
    gauges('headroom_nodes', 'Known nodes.', ['status'], function* () {
      const counts = { up: 0, suspect: 0, unreachable: 0 }
      for (const { status } of views.nodes()) counts[status] += 1
      yield* byLabel(counts)
    }),
    gauge(
      'headroom_nodes_auto_cordoned',
      'Nodes that the controller has cordoned because they cannot start tasks.',
      () => {
        let closed = 0
        for (const { autoCordon } of views.nodes()) if (autoCordon !== null) closed += 1
        return closed
      },
    ),
    gauges(
      'headroom_nodes_by_task_identity',
      'Nodes, by the user that their tasks run as.',
      ['identity'],
      function* () {
        const counts: Record<string, number> = Object.fromEntries(
          [...TASK_IDENTITIES, 'unknown'].map((kind) => [kind, 0]),
        )
        for (const { taskIdentity } of views.nodes())
          counts[taskIdentity ?? 'unknown'] = (counts[taskIdentity ?? 'unknown'] ?? 0) + 1
        yield* byLabel(counts)
      },
    ),
    gauges('headroom_gpus', 'GPUs of known nodes.', ['status'], function* () {
      const { gpus, gpusUp } = views.totals()
      yield* byLabel({ up: gpusUp, away: gpus - gpusUp })
    }),
    gauges(
      'headroom_overcommit_percent',
      'VRAM overcommit in effect on the node, and its source.',
      ['node', 'source'],
      function* () {
        const { default_vram_overcommit_percent: byDefault } = views.config().fields
        for (const [name, node] of namedNodes(views)) {
          const { percent, source } = resolveOvercommit(byDefault, node.overcommitOverride)
          yield { labels: [name, source], value: percent }
        }
      },
    ),
    gauges(
      'headroom_node_heartbeat_age_seconds',
      'Time since the node was last seen.',
      ['node'],
      function* () {
        if (fleet === 'simulated') return
        const now = views.now()
        for (const [name, node] of namedNodes(views))
          yield { labels: [name], value: Math.max(0, now - node.lastSeenAt) / 1000 }
      },
    ),
    gauges(
      'headroom_node_full_queues',
      'Full accept queues of swapped-out tasks; clients cannot connect to these tasks.',
      ['node'],
      function* () {
        for (const [name, { requests }] of namedNodes(views))
          yield { labels: [name], value: requests?.full_queues ?? 0 }
      },
    ),
    counters(
      'headroom_node_refused_requests_total',
      'Requests for swapped-out tasks that proxies refused; counted when the task is resident again.',
      ['node', 'reason'],
      function* () {
        for (const [name, { requests }] of namedNodes(views)) {
          yield { labels: [name, 'full'], value: requests?.refused ?? 0 }
          yield { labels: [name, 'late'], value: requests?.expired ?? 0 }
        }
      },
    ),
    gauge(
      'headroom_nodes_without_series',
      `Nodes beyond the first ${MAX_NODES_WITH_SERIES}, which have no series of their own.`,
      () => Math.max(0, views.totals().nodes - MAX_NODES_WITH_SERIES),
    ),
  )
}

/** Two nodes may have the same name; the later one is distinguished by its id. */
function* namedNodes(views: Views): Generator<readonly [name: string, node: Node]> {
  const taken = new Set<string>()
  for (const node of views.nodes()) {
    if (taken.size === MAX_NODES_WITH_SERIES) return
    const name = taken.has(node.name) ? `${node.name} ${node.id}` : node.name
    taken.add(name)
    yield [name, node]
  }
}

export function addTwinMetrics(metrics: Metrics, twin: Twin | null): void {
  metrics.add(
    gauges(
      'headroom_twin_drift_ratio',
      'Distance between the cluster and the forecast of the twin, in widths of the forecast band; mean ' +
        'over the last hour.',
      ['metric'],
      function* () {
        if (twin === null) return
        const { scores } = twin.drift()
        for (const metric of TWIN_METRICS) {
          const value = scores[metric]
          if (value !== null) yield { labels: [metric], value }
        }
      },
    ),
    gauge(
      'headroom_twin_drifting',
      '1 while the twin drifts and gives no forecasts, 0 while it is steady; no sample until enough ' +
        'values are compared.',
      () => {
        const state = twin?.drift().state ?? 'unknown'
        return state === 'unknown' ? null : Number(state === 'drifting')
      },
    ),
  )
}
