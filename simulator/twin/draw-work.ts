/**
 * Draws the remaining work of a task from a workload model: its end, and its demand for the GPU until then.
 */
import type { TaskRecord } from '../../controller/ports/store.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Work } from '../trace/trace-format.ts'
import { aloneMsSoFar, residenceOf, wantsShareOf } from './workload-model.ts'
import type { Stretches, WorkloadModel } from './workload-model.ts'

/** Maximum number of stretches of a task; the rest is one more pair with the same shares. */
const MAX_STRETCHES = 1_000
/** At and above the first share a task always wants the GPU; at and below the other, never. */
const ALWAYS = 0.97
const NEVER = 0.01

export function drawWorkLeft(
  model: WorkloadModel,
  record: TaskRecord,
  at: Instant,
  random: RandomStream,
): Work {
  const leftMs = residenceOf(model, record.gpuCount).drawLeft(aloneMsSoFar(record, at), random)
  return drawActivity(
    model,
    leftMs,
    wantsShareOf(record, at) ?? drawShare(model, random),
    doingOf(record, at),
    random,
  )
}

/** A single estimate: the median remaining residence of tasks that have been present as long. */
export function guessWorkLeft(
  model: WorkloadModel,
  record: TaskRecord,
  at: Instant,
  random: RandomStream,
  maxStretches: number,
): Work {
  const leftMs = residenceOf(model, record.gpuCount).medianLeft(aloneMsSoFar(record, at))
  return drawActivity(
    model,
    leftMs,
    wantsShareOf(record, at) ?? drawShare(model, random),
    doingOf(record, at),
    random,
    maxStretches,
  )
}

function doingOf({ placement }: TaskRecord, at: Instant): Doing | null {
  if (placement === null || placement.startedAt === null) return null
  return { wantsGpu: placement.wantsGpu, forMs: Math.max(0, at - placement.wantsSince) }
}

/** The share of a random recent task; 1 if no task has been present for long. */
export function drawShare({ wantsShares }: WorkloadModel, random: RandomStream): number {
  return wantsShares[Math.floor(random() * wantsShares.length)] ?? 1
}

/** Its current activity, and since when. */
interface Doing {
  readonly wantsGpu: boolean
  readonly forMs: DurationMs
}

/** Phases of `leftMs` in total, 1 ms or more, that continue its current activity. */
export function drawActivity(
  model: WorkloadModel,
  leftMs: DurationMs,
  share: number,
  now: Doing | null,
  random: RandomStream,
  maxStretches = MAX_STRETCHES,
): Work {
  const isKnown = model.wanting.ms.length > 0 && model.idle.ms.length > 0
  if (share >= ALWAYS && now?.wantsGpu !== false) return { kind: 'duration', ms: leftMs }
  if (!isKnown)
    return now?.wantsGpu === false
      ? { kind: 'phases', phases: [[0, leftMs]] }
      : { kind: 'duration', ms: leftMs }
  if (share <= NEVER && now?.wantsGpu !== true)
    return { kind: 'phases', phases: [[now === null ? 1 : 0, leftMs]] }
  return alternate(model, leftMs, share, now, random, maxStretches)
}

function alternate(
  model: WorkloadModel,
  leftMs: DurationMs,
  share: number,
  now: Doing | null,
  random: RandomStream,
  maxStretches: number,
): Work {
  const { wanting, idle } = model
  // The ratio of idle to busy stretches follows the task's own share.
  const clipped = Math.min(ALWAYS, Math.max(NEVER, share))
  const scale = (wanting.meanMs * (1 - clipped)) / clipped / idle.meanMs
  const drawIdle = (): number => drawFrom(idle, 0, random) * scale
  const phases: (readonly [DurationMs, DurationMs])[] = []
  let left = leftMs
  const take = (ms: number): DurationMs => {
    const whole = Math.min(left, Math.max(1, Math.round(ms)))
    left -= whole
    return whole
  }
  if (now?.wantsGpu === false) phases.push([0, take(drawFrom(idle, now.forMs / scale, random) * scale)])
  else phases.push([take(drawFrom(wanting, now?.forMs ?? 0, random)), take(drawIdle())])
  while (left > 0 && phases.length < maxStretches)
    phases.push([take(drawFrom(wanting, 0, random)), take(drawIdle())])
  if (left > 0) phases.push([Math.round(left * clipped), left - Math.round(left * clipped)])
  return { kind: 'phases', phases }
}

/**
 * The rest of a stretch that has lasted `ageMs`; one that is longer than all observed ones lasts for their
 * mean.
 */
function drawFrom({ ms: rising, meanMs }: Stretches, ageMs: number, random: RandomStream): number {
  let low = 0
  let high = rising.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((rising[middle] as number) > ageMs) high = middle
    else low = middle + 1
  }
  if (low === rising.length) return meanMs
  return (rising[low + Math.floor(random() * (rising.length - low))] as number) - ageMs
}
