/**
 * Commands of a placement to its node. After a restart the controller does not know which have been sent;
 * nodes recognise duplicates (R7).
 */
import type { Effect, PrepareEffect, StartEffect, StopEffect } from '../../model/effect.ts'
import { imageToRun } from '../../model/image-to-run.ts'
import type { Policy } from '../../model/config.ts'
import type { Mutable } from '../../../protocol/fields.ts'
import { swapMethodIn } from '../../../protocol/task-body.ts'
import type { DurationMs } from '../../../protocol/units.ts'
import type { LivePlacement, LiveTask } from '../../state/facts.ts'
import type { Stopping } from '../../model/placement.ts'

/** Grace period between SIGTERM and SIGKILL; a lease has no process. */
export function stopGraceOf(
  { spec }: Pick<LiveTask, 'spec'>,
  { stopGraceMs, maxStopGraceMs }: Policy,
): DurationMs {
  return spec.command === null ? 0 : Math.min(spec.stopGraceMs ?? stopGraceMs, maxStopGraceMs)
}

export function startEffect(placement: LivePlacement, policy: Policy): StartEffect {
  const { spec } = placement.task
  const effect: Mutable<StartEffect> = {
    kind: 'start',
    nodeId: placement.node.id,
    taskId: spec.id,
    attempt: placement.attempt,
    gpus: placement.gpus.map((gpu) => gpu.index),
    vramMib: placement.demandMib,
    gpuMode: spec.gpuMode,
    noswap: placement.noswap,
    priority: spec.priority,
    onNodeLoss: spec.onNodeLoss,
    command: spec.command,
    image: imageToRun(placement.task),
    workdir: spec.workdir ?? null,
    cwd: spec.cwd ?? null,
    limits: spec.limits ?? null,
    environment: spec.environment ?? null,
    name: spec.name,
    owner: spec.owner,
    stopGraceMs: stopGraceOf(placement.task, policy),
  }
  if (spec.ports !== undefined) effect.ports = spec.ports
  if ((spec.wakeOnRequest ?? null) !== null) effect.wakeOnRequest = spec.wakeOnRequest === true
  if (spec.mounts !== undefined) effect.mounts = spec.mounts
  return Object.assign(effect, swapMethodIn(spec))
}

export function stopEffect(placement: LivePlacement, { reason, graceMs = 0 }: Stopping): StopEffect {
  return { kind: 'stop', ...addressOf(placement), reason, graceMs }
}

/** Returns the commands that the node of a restored placement may not have received. */
export function commandsToResend(placement: LivePlacement, policy: Policy): Effect[] {
  const { startedAt, stopping, residency, generation, noswap } = placement
  const address = addressOf(placement)
  const orders: Effect[] = []
  if (placement.isNoswapUnacknowledged) orders.push({ kind: 'set_noswap', ...address, noswap })
  if (stopping !== null) orders.push(stopEffect(placement, stopping))
  else if (startedAt === null) orders.push(startEffect(placement, policy))
  else if (residency === 'swapping_out')
    orders.push({ kind: 'swap_out', ...address, generation, forceActive: placement.wantsGpu })
  else if (residency === 'swapping_in')
    orders.push({ kind: 'swap_in', ...address, generation, forceActive: false })
  return orders
}

/**
 * Returns true if the effect still matches the controller's intent for the current attempt. Other commands
 * are dropped.
 */
export function isStillWanted(
  effect: Exclude<Effect, PrepareEffect>,
  placement: LivePlacement | null | undefined,
): boolean {
  if (
    placement === null ||
    placement === undefined ||
    placement.attempt !== effect.attempt ||
    placement.isInDoubt
  )
    return false
  switch (effect.kind) {
    case 'start':
      return placement.startedAt === null
    case 'stop':
      return placement.stopping !== null
    case 'swap_out':
      return placement.residency === 'swapping_out' && placement.generation === effect.generation
    case 'swap_in':
      return placement.residency === 'swapping_in' && placement.generation === effect.generation
    case 'grant':
      return placement.demandMib === effect.mib
    case 'refuse_growth':
      return placement.heldGrowth === null
    case 'set_noswap':
      return placement.noswap === effect.noswap
  }
}

function addressOf(placement: LivePlacement): {
  readonly nodeId: string
  readonly taskId: string
  readonly attempt: number
} {
  return { nodeId: placement.node.id, taskId: placement.task.spec.id, attempt: placement.attempt }
}
