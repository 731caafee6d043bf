import type { ConfigFields } from '../../model/config.ts'
import type { Gpu, Node } from '../../model/placement.ts'
import type { SwapCounts, Views } from '../../query/views.ts'
import { resolveOvercommit } from '../../model/vram.ts'
import type { Instant, Percent } from '../../../protocol/units.ts'
import type { GpuBody, NodeBody } from './schema.ts'
import { presentInstant, presentInstantOrNull } from '../http/instant.ts'
import { sumOfVram, vramOfGpu } from './present-vram.ts'

/** Readings of a node that views show in addition to its state. */
export interface NodeReadings {
  readonly lastHeardAt: Instant
  readonly swaps: SwapCounts
}

export function readingsOf(node: Node, views: Pick<Views, 'lastHeardAt' | 'nodeSwaps'>): NodeReadings {
  return { lastHeardAt: views.lastHeardAt(node), swaps: views.nodeSwaps(node) }
}

/** A node with its GPUs; `defaults` is the live global configuration. */
export function presentNode(
  node: Node,
  defaults: ConfigFields,
  { lastHeardAt, swaps }: NodeReadings,
): NodeBody {
  const overcommit = resolveOvercommit(defaults.default_vram_overcommit_percent, node.overcommitOverride)
  const gpus = node.gpus.map((gpu) => presentGpu(gpu, overcommit.percent))
  return {
    node_id: node.id,
    name: node.name,
    address: node.address,
    status: node.status,
    cordoned: node.isCordoned,
    auto_cordon: presentAutoCordon(node),
    drain: presentDrain(node),
    groups: node.groups,
    task_identity: node.taskIdentity,
    features: node.features,
    overcommit_vram_percent: node.overcommitOverride,
    safety_reserve_mib: node.reserveOverrideMib,
    overcommit: {
      override_percent: node.overcommitOverride,
      default_percent: defaults.default_vram_overcommit_percent,
      effective_percent: overcommit.percent,
      source: overcommit.source,
    },
    reserve: {
      override_mib: node.reserveOverrideMib,
      default_mib: defaults.safety_reserve_mib,
      effective_mib: node.reserveOverrideMib ?? defaults.safety_reserve_mib,
    },
    vram: sumOfVram(gpus.map((gpu) => gpu.vram)),
    host_memory: {
      swap_mib: node.hostSwapMib,
      used_mib: node.hostUsedMib,
      promised_mib: node.hostPromisedMib,
    },
    quarantined_attempts: node.quarantine.length,
    attempts: node.attemptCount,
    max_attempts: node.maxAttempts,
    queue_length: node.queue.length,
    swaps: { outs: swaps.swapOuts, ins: swaps.swapIns },
    gpus,
    registered_at: presentInstant(node.registeredAt),
    last_seen_at: presentInstant(lastHeardAt),
  }
}

function presentAutoCordon({ autoCordon }: Node): NodeBody['auto_cordon'] {
  if (autoCordon === null) return null
  const { since, code, reason, nextTrialAt, failedTrials, isTrialOpen } = autoCordon
  return {
    since: presentInstant(since),
    code,
    reason,
    next_trial_at: presentInstant(nextTrialAt),
    failed_trials: failedTrials,
    is_trial_open: isTrialOpen,
  }
}

function presentDrain({ drain, gpus }: Node): NodeBody['drain'] {
  if (drain === null) return null
  const tasks = new Set(gpus.flatMap((gpu) => gpu.placements))
  return {
    since: presentInstant(drain.since),
    moves_at: presentInstantOrNull(drain.movesAt),
    by: drain.by,
    tasks_left: tasks.size,
  }
}

function presentGpu(gpu: Gpu, overcommitPercent: Percent): GpuBody {
  return {
    index: gpu.index,
    model: gpu.model,
    vram: vramOfGpu(gpu, overcommitPercent),
    task_ids: gpu.placements.map((placement) => placement.task.spec.id),
    exclusive_task_id: gpu.exclusiveTask?.spec.id ?? null,
  }
}
