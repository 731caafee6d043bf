/** The GPUs of a node for pods, and their source. */
import { faultText } from '../contract/field-fault.ts'
import type { Node } from '../contract/kubernetes.ts'
import type { GPUNodeStatus } from '../contract/policies.ts'
import type { KubeObject } from '../ports/kube-api.ts'
import { type DeclaredGpu, declaredGpus, isEnabled } from './declared-gpus.ts'

export interface NodeGpus {
  readonly gpus: readonly DeclaredGpu[]
  /** Why its GPUs cannot be used; null: they can. */
  readonly fault: string | null
  /** Reported by an agent; otherwise declared by the annotation. */
  readonly areReported: boolean
}

/** Reason of the condition Ready while an agent has said which GPUs there are. */
export const REPORTED = 'GPUsReported'

/**
 * 1. What the agent reports.
 * 2. What an agent has reported last, while none does.
 * 3. The annotation of the node.
 * None without the label that gives the GPUs to Headroom.
 * @param reported null: no agent has reported to this operator
 */
export function nodeGpus(
  node: Node | null,
  reported: readonly DeclaredGpu[] | null,
  gpuNode: KubeObject | null,
): NodeGpus {
  if (node === null || !isEnabled(node.metadata)) return { gpus: [], fault: null, areReported: false }
  const known = reported ?? lastReported(gpuNode)
  if (known !== null) {
    const twice = known.find(({ uuid }, place) => known.findIndex((each) => each.uuid === uuid) !== place)
    return twice === undefined
      ? { gpus: known, fault: null, areReported: true }
      : { gpus: [], fault: `The agent reports GPU ${twice.uuid} twice.`, areReported: true }
  }
  const declared = declaredGpus(node.metadata)
  return declared.ok
    ? { gpus: declared.value, fault: null, areReported: false }
    : { gpus: [], fault: declared.faults.map(faultText).join('; '), areReported: false }
}

function lastReported(gpuNode: KubeObject | null): readonly DeclaredGpu[] | null {
  const { conditions = [], gpus = [] } = (gpuNode?.['status'] ?? {}) as GPUNodeStatus
  if (!conditions.some(({ type, reason }) => type === 'Ready' && reason === REPORTED)) return null
  return gpus.map(({ uuid, model = '', physicalMib: vramMib }) => ({ uuid, model, vramMib }))
}
