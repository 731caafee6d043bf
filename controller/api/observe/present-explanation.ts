import type { NodeVerdict } from '../../query/explain/explain-nodes.ts'
import type { FullExplanation, WordedChange } from '../../query/explain/explain-fully.ts'
import type { ExplanationBody } from './explanation-schema.ts'
import { presentInstantOrNull } from '../http/instant.ts'

type Parts = Pick<ExplanationBody, 'verdicts' | 'would_fit_if' | 'victim'>

export function presentExplanation({ nodes, wouldFitIf, victim }: FullExplanation): Parts {
  return {
    verdicts:
      nodes === null
        ? null
        : { nodes: nodes.named.map(presentVerdict), others: nodes.others, node_count: nodes.nodeCount },
    would_fit_if:
      wouldFitIf === null
        ? null
        : {
            fits_alone: wouldFitIf.fitsAlone,
            changes: wouldFitIf.changes.map(presentChange),
            nodes_tried: wouldFitIf.nodesTried,
            nodes: wouldFitIf.nodes,
          },
    victim:
      victim === null
        ? null
        : {
            standing: victim.standing,
            eligible_at: presentInstantOrNull(victim.eligibleAt),
            sentence: victim.sentence,
          },
  }
}

function presentVerdict({ nodeId, name, reason, haveMib, needMib, gpus }: NodeVerdict) {
  return {
    node_id: nodeId,
    name,
    fits: reason === null,
    reason,
    have_mib: haveMib,
    need_mib: needMib,
    gpus: gpus.map(({ gpu, admitsNowMib, admitsAfterSwapMib, freeMib, commitRoomMib, reachMib, score }) => ({
      gpu,
      admits_now_mib: admitsNowMib,
      admits_after_swap_mib: admitsAfterSwapMib,
      free_mib: freeMib,
      commit_room_mib: commitRoomMib,
      reach_mib: reachMib,
      ...score,
    })),
  }
}

function presentChange({ change, sentence, proviso }: WordedChange) {
  const { node } = change
  const isNoswap = change.change === 'noswap'
  return {
    change: change.change,
    scope: 'scope' in change ? change.scope : null,
    from: 'from' in change ? change.from : isNoswap ? 1 : null,
    to: 'to' in change ? change.to : isNoswap ? 0 : null,
    group: 'group' in change ? change.group : null,
    task_id: 'task' in change ? change.task.spec.id : null,
    at: presentInstantOrNull('at' in change ? change.at : null),
    node_id: node.id,
    node_name: node.name,
    sentence,
    proviso,
  }
}
