/**
 * A model of the recent workload: how long tasks are present, their share of demand for the GPU, and the
 * arrivals. Pure; docs/twin.md.
 */
import type { ClusterSnapshot, NodeSpeeds, RecentPast } from '../../controller/ports/twin.ts'
import type { TaskRecord } from '../../controller/ports/store.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { assumedSpeeds } from '../calibration/learned-models.ts'
import { Residence } from './residence.ts'
import type { Seen } from './residence.ts'

/** With fewer ends, residences are unknown. */
const LEAST_ENDS = 10
/** A class of tasks with fewer ends is drawn like all others. */
const LEAST_ENDS_OF_CLASS = 20
/** Younger tasks are expected to have the same demand as others. */
const LEAST_AGE_FOR_OWN_SHARE_MS = 600_000

/** Mean stay of tasks that stay: a century. */
const FOREVER_MS = 36_525 * 86_400_000

/** A recent task, as a pattern for future ones. */
export interface SeenTask {
  readonly record: TaskRecord
  /**
   * Share of the time since its first start, without waits, in which it wanted the GPU; null: it has not been
   * present for long.
   */
  readonly wantsShare: number | null
}

export interface WorkloadModel {
  readonly at: Instant
  readonly pastMs: DurationMs
  /** By number of GPUs if enough have ended; the others under 0. */
  readonly residence: ReadonlyMap<number, Residence>
  /** Submitted in that time, ended or not. */
  readonly seen: readonly SeenTask[]
  readonly perHour: number
  /** Shares of demand of tasks that have been present for long enough. */
  readonly wantsShares: readonly number[]
  readonly wanting: Stretches
  readonly idle: Stretches
  /** Speeds of nodes with observations. */
  readonly speeds: readonly NodeSpeeds[]
  readonly assumes: readonly string[]
}

/** Stretches of one kind, increasing. */
export interface Stretches {
  readonly ms: readonly DurationMs[]
  readonly meanMs: number
}

/** Reason for having no model. */
export interface NoModel {
  readonly reason: 'NO_HISTORY'
  readonly detail: string
}

export function workloadModelOf(image: ClusterSnapshot, past: RecentPast): WorkloadModel | NoModel {
  const started = past.ended.filter(({ firstStartedAt }) => firstStartedAt !== null)
  const pastMs = Math.max(1, past.to - past.from)
  if (started.length < LEAST_ENDS) {
    const detail =
      `${endsInWords(started.length)} in the last ${period(pastMs)}; the twin ` +
      `needs ${LEAST_ENDS} to know how long tasks stay`
    return { reason: 'NO_HISTORY', detail }
  }
  const submitted = [...past.ended, ...image.tasks].filter(({ submittedAt }) => submittedAt >= past.from)
  const seen = submitted
    .sort((a, b) => a.seq - b.seq)
    .map((record) => ({ record, wantsShare: wantsShareOf(record, image.at) }))
  const perHour = (submitted.length * 3_600_000) / pastMs
  const residence = residencesOf(
    [...started, ...image.tasks.filter(({ placement }) => placement !== null)],
    image.at,
  )
  const [wanting, idle] = [stretchesOf(past.runs.wantingMs), stretchesOf(past.runs.idleMs)]
  const assumes = [
    `residences follow the ${started.length} tasks that ended in the last ${period(pastMs)}, ` +
      'given how long each has been there',
    `tasks like the ${submitted.length} of that time arrive at random, ${perHour.toFixed(1)} an hour`,
    wanting.ms.length === 0 || idle.ms.length === 0
      ? 'a task wants the GPU all the time or as it does now: no change has been seen yet'
      : `tasks alternate as in the last ${wanting.ms.length} stretches of wanting the GPU and ` +
        `${idle.ms.length} without`,
    `${assumedSpeeds(past.speeds)}; tasks share a GPU in time slices, no task grows, ` + 'nothing fails',
  ]
  const wantsShares = seen.flatMap(({ wantsShare }) => (wantsShare === null ? [] : [wantsShare]))
  const { speeds } = past
  return { at: image.at, pastMs, residence, seen, perHour, wantsShares, wanting, idle, speeds, assumes }
}

/** The model of a cluster that keeps no ended tasks: those that are there stay, and none arrives. */
export function stayingModelOf(image: ClusterSnapshot, past: RecentPast): WorkloadModel {
  const seen = image.tasks.map((record) => ({ record, wantsShare: wantsShareOf(record, image.at) }))
  return {
    ...{ at: image.at, pastMs: Math.max(1, past.to - past.from), seen: [], perHour: 0 },
    residence: new Map([[0, new Residence([{ ms: FOREVER_MS, hasEnded: false }])]]),
    wantsShares: seen.flatMap(({ wantsShare }) => (wantsShare === null ? [] : [wantsShare])),
    wanting: stretchesOf(past.runs.wantingMs),
    idle: stretchesOf(past.runs.idleMs),
    speeds: past.speeds,
    assumes: ['all tasks stay, and none arrives', `${assumedSpeeds(past.speeds)}`],
  }
}

export function isModel(model: WorkloadModel | NoModel): model is WorkloadModel {
  return 'residence' in model
}

/** For tasks with this number of GPUs. */
export function residenceOf({ residence }: WorkloadModel, gpuCount: number): Residence {
  return residence.get(gpuCount) ?? (residence.get(0) as Residence)
}

/** Its time since its first start without waits: its residence if it had run alone. */
export function aloneMsSoFar(record: TaskRecord, at: Instant): DurationMs {
  const { firstStartedAt, finishedAt, counters, gpuCount } = record
  if (firstStartedAt === null) return 0
  const [, , , swapUs, computeUs] = counters
  return Math.max(
    0,
    (finishedAt ?? at) - firstStartedAt - Math.round((swapUs + computeUs) / (1000 * gpuCount)),
  )
}

/** The demand of a task is its served time plus its waits. */
export function wantsShareOf(record: TaskRecord, at: Instant): number | null {
  const { firstStartedAt, finishedAt, counters, gpuCount } = record
  if (firstStartedAt === null) return null
  const [, servedUs] = counters
  const aloneMs = aloneMsSoFar(record, at)
  if (finishedAt === null && aloneMs < LEAST_AGE_FOR_OWN_SHARE_MS) return null
  return Math.min(1, servedUs / (1000 * gpuCount * Math.max(1, aloneMs)))
}

function residencesOf(records: readonly TaskRecord[], at: Instant): ReadonlyMap<number, Residence> {
  const byGpus = new Map<number, Seen[]>([[0, []]])
  for (const record of records) {
    const seen: Seen = { ms: aloneMsSoFar(record, at), hasEnded: record.finishedAt !== null }
    byGpus.get(0)?.push(seen)
    const alike = byGpus.get(record.gpuCount)
    if (alike === undefined) byGpus.set(record.gpuCount, [seen])
    else alike.push(seen)
  }
  const residences = [...byGpus].map(([gpus, seen]) => [gpus, new Residence(seen)] as const)
  return new Map(residences.filter(([gpus, { ends }]) => gpus === 0 || ends >= LEAST_ENDS_OF_CLASS))
}

function stretchesOf(runs: readonly DurationMs[]): Stretches {
  const ms = [...runs].sort((a, b) => a - b)
  return { ms, meanMs: Math.max(1, ms.reduce((sum, each) => sum + each, 0) / Math.max(1, ms.length)) }
}

function endsInWords(tasks: number): string {
  if (tasks === 0) return 'no task has run and ended'
  return tasks === 1 ? 'only 1 task has run and ended' : `only ${tasks} tasks have run and ended`
}

/** The noun phrase after "the last". */
function period(ms: DurationMs): string {
  if (ms >= 7_200_000) return `${Math.round(ms / 3_600_000)} hours`
  const minutes = Math.max(1, Math.round(ms / 60_000))
  return minutes === 1 ? 'minute' : `${minutes} minutes`
}
