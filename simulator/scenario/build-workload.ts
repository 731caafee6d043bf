/** Converts `workload` entries to items and checks names, ids and the total number of tasks. */
import { resolve } from 'node:path'
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import { startOf } from './build-start.ts'
import { parseDuration } from '../document/quantity.ts'
import type { Refuse } from '../document/refusal.ts'
import type {
  ActivitySpec,
  DurationSpec,
  GenerateItem,
  TaskItem,
  TraceItem,
  VramSpec,
  Weights,
  WorkloadItem,
} from './scenario.ts'
import type { ScenarioDocument } from './schema.ts'
import { DEFAULT_RUN_MS, MAX_GENERATED_TASKS, permilleOf } from './schema-workload.ts'
import { requestOfBody, runPolicyOfBody } from '../../protocol/task-body.ts'

const DAY_MS = 86_400_000

export interface WorkloadContext {
  /** Base folder of relative trace file names. */
  readonly baseDir: string
  /** The clock's. */
  readonly untilMs: DurationMs | null
  readonly startMs: Instant
  /** The most VRAM a task can have on any GPU of the fleet, excluding the reserve. */
  readonly largestFitMib: Mib
}

type Item = ScenarioDocument['workload'][number]
type TraceFields = Extract<Item, { trace: string }>
type GenerateFields = Extract<Item, { generate: string }>
type TaskFields = Extract<Item, { task: unknown }>['task']

export function workloadItemsOf(
  workload: readonly Item[],
  context: WorkloadContext,
  refuse: Refuse,
): WorkloadItem[] {
  const hasSeveralTraces = workload.filter((item) => 'trace' in item).length > 1
  const items = workload.map((item, index): WorkloadItem => {
    if ('trace' in item) return traceItemOf(item, index, context, hasSeveralTraces)
    return 'task' in item ? taskItemOf(item.task) : generateItemOf(item, index, context)
  })
  refuseSameNames(items, refuse)
  refuseSameIds(items, refuse)
  refuseTooMany(items, refuse)
  return items
}

// ── items ────────────────────────────────────────────────────────────────────

function traceItemOf(
  item: TraceFields,
  index: number,
  { baseDir }: WorkloadContext,
  isPrefixed: boolean,
): TraceItem {
  const name = item.name ?? `t${index}`
  return {
    kind: 'trace',
    name,
    file: resolve(baseDir, item.trace),
    idPrefix: isPrefixed ? `${name}-` : '',
    timeScale: item.time_scale,
    sample: item.sample,
    fromMs: item.from,
    toMs: item.to,
    maxGpus: item.max_gpus,
    activity: item.activity === null ? null : activitySpecOf(item.activity),
  }
}

function generateItemOf(item: GenerateFields, index: number, context: WorkloadContext): GenerateItem {
  return {
    kind: 'generate',
    arrivals: item.generate,
    name: item.name ?? `g${index}`,
    ratePerHour: item.rate_per_hour,
    daily: item.hourly === null ? null : { factors: item.hourly, startMs: context.startMs % DAY_MS },
    batch: item.batch,
    fromMs: item.from,
    untilMs: item.until ?? context.untilMs,
    count: item.count,
    gpus: weightsOf(item.gpus),
    vram: item.vram_mib === null ? null : vramSpecOf(item.vram_mib, context.largestFitMib),
    duration: durationSpecOf(item.duration),
    activity: activitySpecOf(item.activity),
    priority: weightsOf(item.priority),
    noswapPermille: permilleOf(item.noswap)!,
    groups: item.groups,
    gpuMode: item.gpu_mode,
    owner: item.owner,
    labels: item.labels,
    runPolicy: runPolicyOfBody(item),
    ...(item.stop_takes === 0 ? {} : { stopTakesMs: item.stop_takes }),
    cancelAfter: item.cancel_after === null ? null : durationSpecOf(item.cancel_after),
  }
}

function weightsOf(weights: number | Readonly<Record<string, number>>): Weights {
  if (typeof weights === 'number') return [[weights, 1]]
  const pairs = Object.entries(weights).map(([value, weight]) => [Number(value), weight] as const)
  return pairs.toSorted((a, b) => a[0] - b[0])
}

function vramSpecOf(vram: NonNullable<GenerateFields['vram_mib']>, largestFitMib: Mib): VramSpec {
  if (typeof vram === 'number') return { kind: 'constant', mib: vram }
  if ('uniform' in vram) return { kind: 'uniform', minMib: vram.uniform.min, maxMib: vram.uniform.max }
  if ('choice' in vram) return { kind: 'choice', weights: weightsOf(vram.choice) }
  const { median, sigma, min, max } = vram.lognormal
  return {
    kind: 'lognormal',
    medianMib: median,
    sigma,
    minMib: min,
    maxMib: max ?? Math.max(min, largestFitMib),
  }
}

function durationSpecOf(duration: GenerateFields['duration']): DurationSpec {
  if (typeof duration === 'number') return { kind: 'constant', ms: duration }
  if ('uniform' in duration)
    return { kind: 'uniform', minMs: duration.uniform.min, maxMs: duration.uniform.max }
  if ('choice' in duration) return { kind: 'choice', weights: timeWeightsOf(duration.choice) }
  if ('exponential' in duration) return { kind: 'exponential', meanMs: duration.exponential.mean }
  return { kind: 'lognormal', medianMs: duration.lognormal.median, sigma: duration.lognormal.sigma }
}

function timeWeightsOf(weights: Readonly<Record<string, number>>): Weights {
  const pairs = Object.entries(weights).map(([time, weight]) => [parseDuration(time) ?? 1, weight] as const)
  return pairs.toSorted((a, b) => a[0] - b[0])
}

function activitySpecOf(activity: GenerateFields['activity']): ActivitySpec {
  if (typeof activity === 'string') return activity
  return {
    busy: durationSpecOf(activity.busy),
    idle: durationSpecOf(activity.idle),
    startsIdle: activity.first === 'idle',
  }
}

function taskItemOf(task: TaskFields): TaskItem {
  return {
    kind: 'task',
    atMs: task.at,
    request: requestOfBody({ ...task, gpu_count: task.gpus }, task.id, task.owner),
    work: task.work ?? {
      kind: 'residence',
      ms: task.run ?? DEFAULT_RUN_MS,
      activity: activitySpecOf(task.activity),
    },
    allocSteps: task.alloc,
    cancelAtMs: task.cancel_at,
    ...(task.stop_takes === 0 ? {} : { stopTakesMs: task.stop_takes }),
    ...(task.state === null
      ? {}
      : { state: startOf(task.state, { vramMib: task.vram_mib, noswap: task.noswap }) }),
  }
}

// ── checks across items ──────────────────────────────────────────────────────

function refuseSameNames(items: readonly WorkloadItem[], refuse: Refuse): void {
  const indexOf = new Map<string, number>()
  for (const [index, item] of items.entries()) {
    if (item.kind === 'task') continue
    const earlier = indexOf.get(item.name)
    if (earlier === undefined) indexOf.set(item.name, index)
    else
      refuse(
        ['workload', index, 'name'],
        `${item.name} is the name of workload[${earlier}], too; each needs its own`,
      )
  }
}

function refuseSameIds(items: readonly WorkloadItem[], refuse: Refuse): void {
  const makes = generatedIdTest(items)
  const indexOf = new Map<string, number>()
  for (const [index, item] of items.entries()) {
    if (item.kind !== 'task') continue
    const { id } = item.request
    const place = ['workload', index, 'task', 'id']
    const earlier = indexOf.get(id)
    if (earlier === undefined) indexOf.set(id, index)
    else refuse(place, `${id} is the ID of workload[${earlier}], too; each needs its own`)
    const maker = makes(id)
    if (maker !== null) refuse(place, `is an ID that the generated tasks of ${maker} have, too`)
  }
}

/** Returns a test for ids: the name of the generate item that makes such an id, or null. */
export function generatedIdTest(items: readonly WorkloadItem[]): (id: string) => string | null {
  const names = new Set(items.filter((item) => item.kind === 'generate').map((item) => item.name))
  return (id) => {
    const name = names.size === 0 ? undefined : /^(.*)-\d+$/.exec(id)?.[1]
    return name !== undefined && names.has(name) ? name : null
  }
}

function refuseTooMany(items: readonly WorkloadItem[], refuse: Refuse): void {
  let total = 0
  for (const [index, item] of items.entries()) {
    if (item.kind !== 'generate') continue
    const { fromMs, untilMs, count } = item
    if (untilMs === null && count === null) {
      refuse(['workload', index, 'until'], 'is needed here, or count, or until in clock: it would never end')
      continue
    }
    const ratePerHour =
      item.ratePerHour * item.batch * (item.daily === null ? 1 : Math.max(...item.daily.factors))
    const byTime =
      untilMs === null ? Infinity : Math.ceil((Math.max(0, untilMs - fromMs) * ratePerHour) / 3_600_000)
    total += Math.min(byTime, count ?? Infinity)
    if (total > MAX_GENERATED_TASKS) {
      return refuse(
        ['workload', index, 'rate_per_hour'],
        `makes about ${total} tasks with those above; allowed are ${MAX_GENERATED_TASKS} in all`,
      )
    }
  }
}
