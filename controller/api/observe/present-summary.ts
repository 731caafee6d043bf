/**
 * The cluster on one page: how many tasks, how much VRAM, and how well the GPUs serve what is wanted of them.
 */
import { countConditions } from '../../model/node-conditions.ts'
import type { Alarm } from '../../query/alarms.ts'
import type { Views } from '../../query/views.ts'
import { starvationPercent } from '../../metrics/starvation.ts'
import type { SeriesWindow } from '../../series/recent-window.ts'
import type { RecentEnds } from './recent-ends.ts'
import { trendsOf, type Figures } from './trends.ts'
import type { SummaryBody } from './summary-schema.ts'
import { presentInstant, presentInstantOrNull } from '../http/instant.ts'
import { vramOfNodes } from '../nodes/present-vram.ts'

export interface SummarySources {
  readonly views: Views
  readonly fleet: SummaryBody['fleet']
  readonly brokerUrls: readonly string[]
  /** null when no two readings are far enough apart yet. */
  readonly window: SeriesWindow | null
  readonly pendingByReason: SummaryBody['pending_by_reason']
  readonly yesterday: Figures
  readonly controllers: SummaryBody['controllers']
  /** null: the store has not answered yet. */
  readonly recentEnds: RecentEnds | null
}

export function presentSummary({
  views,
  fleet,
  brokerUrls,
  window,
  pendingByReason,
  yesterday,
  controllers,
  recentEnds,
}: SummarySources): SummaryBody {
  const totals = views.totals()
  const percentages = presentPercentages(window, totals.gpusUp)
  const figures = {
    utilization: percentages.utilization_percent,
    starvation: percentages.starvation_percent?.total ?? null,
    pending: views.counts().pending,
  }
  return {
    at: presentInstant(views.now()),
    revision: views.lastEventSeq(),
    fleet,
    broker_urls: brokerUrls,
    alarms: views.alarms().map((alarm) => presentAlarm(alarm, views)),
    tasks: { ...presentCounts(views), ended_last_hour: presentEnds(recentEnds) },
    pending_by_reason: pendingByReason,
    nodes: { total: totals.nodes, up: totals.nodesUp, ...countConditions(views.nodes()) },
    gpus: { total: totals.gpus, up: totals.gpusUp },
    vram: presentVram(views),
    overcommit: presentOvercommit(views),
    swaps: {
      outs: totals.swapOuts,
      ins: totals.swapIns,
      out_mib: totals.swappedOutMibTotal,
      in_mib: totals.swappedInMibTotal,
    },
    ...percentages,
    starvation_compute_is_estimate: fleet === 'live',
    trends: trendsOf(figures, yesterday),
    controllers,
  }
}

/** Names of nodes that one alarm shows. */
const MAX_ALARM_NODES = 20

function presentAlarm({ code, since, nodeIds, detail }: Alarm, views: Views): SummaryBody['alarms'][number] {
  const nodes = nodeIds.slice(0, MAX_ALARM_NODES).map((id) => views.node(id)?.name ?? id)
  return { code, since: presentInstantOrNull(since), nodes, detail }
}

function presentCounts(views: Views): Omit<SummaryBody['tasks'], 'ended_last_hour'> {
  const { pending, assigned, running, unreachable, completed, failed, cancelled, lost } = views.counts()
  return {
    by_list: {
      running: assigned + running + unreachable,
      pending,
      completed: completed + failed + cancelled + lost,
    },
    by_state: { pending, assigned, running, unreachable, completed, failed, cancelled, lost },
    stopping: views.stoppingCount(),
  }
}

function presentEnds(ends: RecentEnds | null): SummaryBody['tasks']['ended_last_hour'] {
  return ends === null ? null : { since: presentInstant(ends.since), failed: ends.failed, lost: ends.lost }
}

function presentVram(views: Views): SummaryBody['vram'] {
  const totals = views.totals()
  return {
    physical_mib: totals.physicalMib,
    used_mib: totals.residentMib + totals.foreignMib,
    resident_mib: totals.residentMib,
    foreign_mib: totals.foreignMib,
    committed_mib: totals.committedMib,
    swapped_mib: totals.swappedMib,
    effective_schedulable_mib: totals.effectiveSchedulableMib,
    commit_limit_mib: totals.commitLimitMib,
    up: vramOfNodes([...views.nodes()].filter(({ status }) => status === 'up')),
  }
}

function presentOvercommit(views: Views): SummaryBody['overcommit'] {
  const { fields, source } = views.config()
  let overrides = 0
  for (const node of views.nodes()) if (node.overcommitOverride !== null) overrides += 1
  return { default_percent: fields.default_vram_overcommit_percent, source, nodes_with_override: overrides }
}

type Percentages = Pick<
  SummaryBody,
  | 'window'
  | 'utilization_percent'
  | 'utilization_unknown_because'
  | 'starvation_percent'
  | 'starvation_unknown_because'
>

const NO_WINDOW = 'The first measurement was just taken; the percentages need two.'

const NONE_UP = 'No GPU is up.'
/**
 * After a start, or when servers come and go: an interval counts for a node that was heard at both ends of
 * it.
 */
const NONE_KNOWN = 'No GPU was up for the entire time between the two measurements.'

function presentPercentages(window: SeriesWindow | null, gpusUp: number): Percentages {
  if (window === null) {
    return {
      window: null,
      utilization_percent: null,
      utilization_unknown_because: NO_WINDOW,
      starvation_percent: null,
      starvation_unknown_because: NO_WINDOW,
    }
  }
  const utilization = window.knownUs === 0 ? null : (100 * window.counters.busy) / window.knownUs
  return {
    window: {
      from: presentInstant(window.from),
      to: presentInstant(window.to),
      seconds: (window.to - window.from) / 1000,
    },
    utilization_percent: utilization,
    utilization_unknown_because: utilization !== null ? null : gpusUp === 0 ? NONE_UP : NONE_KNOWN,
    starvation_percent: starvationPercent(window.counters),
    starvation_unknown_because: null,
  }
}
