import type { Impact, ImpactFigures, NodeImpact } from '../../query/preview/impact.ts'
import type { CycleImpact } from '../../query/preview/impact-cycle.ts'
import type { ChangePart } from '../twin/forecasts.ts'
import type { ImpactBody } from './impact-schema.ts'

/** @param forecast of the simulator */
export function presentImpact(
  { total, nodes, gpusOver, residencyImpossible, pending, nextCycle }: Impact,
  forecast: ChangePart,
): ImpactBody {
  return {
    total: { before: presentFigures(total.before), after: presentFigures(total.after) },
    nodes: nodes.named.map(presentNodeImpact),
    node_count: nodes.count,
    gpus_over: gpusOver.named.map(
      ({ nodeId, gpu, overCommittedMib, reserveDeficitMib, taskIds, taskCount }) => ({
        node_id: nodeId,
        gpu,
        over_committed_mib: overCommittedMib,
        reserve_deficit_mib: reserveDeficitMib,
        task_ids: taskIds,
        task_count: taskCount,
      }),
    ),
    gpu_over_count: gpusOver.count,
    residency_impossible: residencyImpossible.named.map(({ taskId, nodeId, gpu, needMib, haveMib }) => ({
      task_id: taskId,
      node_id: nodeId,
      gpu,
      need_mib: needMib,
      have_mib: haveMib,
    })),
    residency_impossible_count: residencyImpossible.count,
    pending: {
      would_fit: pending.wouldFit,
      would_fit_ids: pending.wouldFitIds,
      infeasible: pending.infeasible,
      infeasible_ids: pending.infeasibleIds,
      looked_at: pending.lookedAt,
      of: pending.of,
      cut: pending.lookedAt < pending.of,
    },
    next_cycle: nextCycle === null ? null : presentCycle(nextCycle),
    ...forecast,
  }
}

function presentCycle({
  starts,
  startsAfterSwaps,
  taskIds,
  swapOuts,
  swapOutMib,
}: CycleImpact): ImpactBody['next_cycle'] {
  return {
    starts,
    starts_after_swaps: startsAfterSwaps,
    task_ids: taskIds,
    swap_outs: swapOuts,
    swap_out_mib: swapOutMib,
  }
}

function presentNodeImpact({ nodeId, name, before, after }: NodeImpact): ImpactBody['nodes'][number] {
  const present = (side: NodeImpact['before']) => ({
    overcommit_percent: side.overcommitPercent,
    reserve_mib: side.reserveMib,
    ...presentFigures(side),
  })
  return { node_id: nodeId, name, before: present(before), after: present(after) }
}

function presentFigures(figures: ImpactFigures): ImpactBody['total']['before'] {
  return {
    effective_schedulable_mib: figures.effectiveSchedulableMib,
    commit_limit_mib: figures.commitLimitMib,
    over_committed_mib: figures.overCommittedMib,
    reserve_deficit_mib: figures.reserveDeficitMib,
  }
}
