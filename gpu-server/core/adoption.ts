/**
 * Takes over what an earlier process of this server left, before the first hello (R4): tasks live on under
 * their guards, ends in between are reported, and a frozen task does not run before the controller has
 * answered.
 */
import type { Instant } from '../../protocol/units.ts'
import type { Attempt } from './attempt.ts'
import { newAttempt } from './attempt.ts'
import type { AttemptEnd, Survivor } from './device.ts'
import { detailOf, finishedBy } from './finished.ts'
import type { Growths } from './growths.ts'
import type { Parts } from './parts.ts'
import type { KeptAttempt } from './storage.ts'

type Living = Extract<Survivor, { readonly end: null }>

export function adopt(parts: Parts, growths: Growths): void {
  const { device, durable, tasks } = parts
  const kept = [...durable.living.values()]
  const found = new Set<string>()
  for (const survivor of device.survivors(kept)) {
    const { taskId, attempt } = survivor.start
    const known = durable.living.get(taskId)
    const before = known?.attempt === attempt ? known : null
    if (before !== null) found.add(taskId)
    if (survivor.end !== null) end(parts, taskId, attempt, before, survivor.end)
    else takeOver(parts, survivor, before)
  }
  for (const attempt of kept) if (!found.has(attempt.taskId)) reportLost(parts, attempt)
  durable.persist()
  for (const attempt of tasks.all()) if (attempt.heldMib !== null) growths.adopted(attempt)
}

function takeOver(
  { clock, device, durable, ledger, tasks, emit }: Parts,
  survivor: Living,
  before: KeptAttempt | null,
): void {
  const attempt = adoptedFrom(survivor, before, clock.now())
  const { taskId } = attempt
  tasks.add(attempt)
  if (attempt.residency === 'resident') ledger.enterVram(attempt, survivor.vramMib ?? attempt.vramMib)
  else {
    ledger.enterVram(attempt, attempt.residualMib)
    ledger.enterHost(attempt, (attempt.vramMib - attempt.residualMib) * attempt.gpus.length)
  }
  durable.addFound(attempt)
  durable.keep(attempt)
  device.setLeased(taskId, attempt.attempt, attempt.onNodeLoss !== 'wait' || !attempt.isStartAcknowledged)
  if (attempt.isStartAcknowledged) return
  emit({ n: 0, kind: 'started', task_id: taskId, attempt: attempt.attempt, wants_gpu: attempt.wantsGpu })
}

/** Earlier decisions about its residency are stale: a swap in progress is over, or was undone. */
function adoptedFrom(survivor: Living, before: KeptAttempt | null, now: Instant): Attempt {
  const { start, isFrozen, wantsGpu, idleMs, vramMib, heldMib } = survivor
  const attempt = newAttempt({ ...start, ...before }, now)
  const isOut =
    survivor.residency === 'unknown'
      ? before?.residency === 'swapped_out'
      : survivor.residency === 'swapped_out'
  attempt.residency = isOut ? 'swapped_out' : 'resident'
  attempt.generation = (before?.generation ?? 0) + 1
  attempt.isStartAcknowledged = before?.isStartAcknowledged ?? false
  attempt.isFrozen = isFrozen
  attempt.endsAs = survivor.isStopping ? 'stopped' : null
  attempt.hasGrace = survivor.isStopping
  attempt.wantsGpu = wantsGpu || (isOut && before?.wantsGpu === true)
  attempt.isWakeable = isOut && (survivor.isWakeable ?? before?.isWakeable === true)
  attempt.isOutByHooks = isOut && before?.isOutByHooks === true
  attempt.residualMib = isOut ? (before?.residualMib ?? 0) : 0
  attempt.lastUseAt = now - idleMs
  // An allocation that was granted without a report to the task still waits.
  attempt.heldMib = heldMib ?? (vramMib !== null && vramMib < attempt.vramMib ? attempt.vramMib : null)
  return attempt
}

/** The attempt ended while no server ran. An end that is already in the outbox is not reported again. */
function end(
  { device, durable }: Parts,
  taskId: string,
  attempt: number,
  before: KeptAttempt | null,
  how: AttemptEnd,
): void {
  const outcome = finishedBy(how)
  const isUnreported = before !== null || attempt > durable.seen.highest(taskId)
  const isDurable =
    !isUnreported ||
    durable.addFinished({
      kind: 'finished',
      task_id: taskId,
      attempt,
      outcome,
      exit_code: how.exitCode,
      detail: detailOf(outcome, how.detail, before?.isStartAcknowledged ?? false),
    })
  if (isDurable) device.forget(taskId, attempt)
}

/** The device has no trace of the attempt. */
function reportLost({ durable }: Parts, attempt: KeptAttempt): void {
  if (attempt.residency === 'none') return durable.burnStarting(attempt)
  durable.addFinished({
    kind: 'finished',
    task_id: attempt.taskId,
    attempt: attempt.attempt,
    outcome: 'lost',
    exit_code: null,
    detail: 'nothing was left of it when the server came back',
  })
}
