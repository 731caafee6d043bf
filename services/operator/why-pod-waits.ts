/** Why a pod waits: the controller's explanation, in terms of Kubernetes where it names things of its own. */
import type { WaitExplanation, WaitReason } from '../../controller/query/explain/explain-reasons.ts'
import { needInWords } from '../../controller/query/explain/explain-sentence.ts'
import type { TaskSpec } from '../../protocol/task.ts'
import { GROUP_LABEL, NODE_LABELS } from '../../operator/contract/names.ts'

export interface PodFacts {
  readonly spec: TaskSpec
  /** Nodes whose GPUs belong to Headroom. */
  readonly nodes: number
  /** Whether the agent of a node has host memory for swap-outs. */
  readonly areSwapped: boolean
}

/** The nodes that admit a pod are a group of the controller, whose name means nothing to the pod's owner. */
const ABOUT_GROUPS: ReadonlySet<WaitReason> = new Set(['GROUP_NOT_FOUND', 'GROUP_EMPTY', 'NO_NODES'])

/** The operator cordons no other nodes. */
const UNSETTLED =
  'Waiting for a node: the API server refuses to write the claims or the GPUNode of each node that could ' +
  'run the pod; the log of the operator says why.'

/** Returns one sentence. */
export function whyPodWaits(
  { primary: { reason }, sentence }: WaitExplanation,
  { spec, nodes, areSwapped }: PodFacts,
): string {
  if (ABOUT_GROUPS.has(reason)) return noNodeInWords(nodes)
  if (reason === 'NODES_CORDONED') return UNSETTLED
  return reason === 'SWAP_SPACE_EXHAUSTED' && !areSwapped ? noAgentInWords(spec) : sentence
}

function noNodeInWords(nodes: number): string {
  const label = `${NODE_LABELS.enabled}: "true"`
  if (nodes === 0) return `Waiting for a node: none has the label ${label}.`
  const which = nodes === 1 ? 'the one node' : `all ${nodes} nodes`
  return (
    `Waiting for a node: node selector, node affinity, tolerations or group (label ${GROUP_LABEL}) of the ` +
    `pod rule out ${which} with the label ${label}.`
  )
}

/** Host memory is not what is missing where nothing can be swapped. */
function noAgentInWords(spec: TaskSpec): string {
  const why = 'no agent runs on the nodes, so that no pod is swapped and overcommit has no effect'
  return `Waiting for VRAM: the pod needs ${needInWords(spec)}; ${why}.`
}
