import type { Decision } from '../../model/decision.ts'
import type { DecisionBody } from './decision-schema.ts'
import { presentInstant } from '../http/instant.ts'

export function presentDecision(decision: Decision): DecisionBody {
  return {
    number: decision.number,
    at: presentInstant(decision.at),
    kind: decision.kind,
    rule: decision.rule,
    sentence: decision.sentence,
    task_id: decision.taskId,
    task_name: decision.taskName,
    node_id: decision.nodeId,
    node_name: decision.nodeName,
    gpus: decision.gpus,
    caused_by: decision.causedBy,
    waited_seconds: decision.waitedMs === null ? null : decision.waitedMs / 1000,
    strategy: decision.strategy,
    gpus_considered: decision.gpusConsidered.map(({ nodeId, nodeName, gpu, key1, key2, isChosen }) => ({
      node_id: nodeId,
      node_name: nodeName,
      gpu,
      key1,
      key2,
      chosen: isChosen,
    })),
    gpus_more: decision.hasMoreGpus,
    victim_ids: decision.victimIds,
    missing: decision.missing,
    candidates: decision.candidates.map(
      ({ taskId, taskName, gpu, level, lastSwapOut, mib, idleMs, chosenBy }) => ({
        task_id: taskId,
        task_name: taskName ?? null,
        gpu,
        level,
        last_swap_out: lastSwapOut,
        mib,
        idle_seconds: idleMs / 1000,
        chosen_by: chosenBy,
      }),
    ),
    candidates_left_out: decision.candidatesLeftOut,
    swap_number: decision.swapNumber,
    others_waiting: decision.others.map(({ taskId, what, waitedMs }) => ({
      task_id: taskId,
      what,
      waited_seconds: waitedMs / 1000,
    })),
    others_left_out: decision.othersLeftOut,
  }
}
