/** The GPUs of a node for pods, and their source. */
import { faultText } from '../contract/field-fault.ts'
import type { Node } from '../contract/kubernetes.ts'
import type { GPUNodeStatus } from '../contract/policies.ts'
import type { KubeObject } from '../ports/kube-api.ts'
import type { Mib } from '../../protocol/units.ts'
import type { AgentLink } from './agent-link.ts'
import { type DeclaredGpu, declaredGpus, isEnabled } from './declared-gpus.ts'

export interface NodeGpus {
  readonly gpus: readonly DeclaredGpu[]
  /** Why its GPUs cannot be used; null: they can. */
  readonly fault: string | null
  /** Reported by an agent; otherwise declared by the annotation. */
  readonly areReported: boolean
  /** VRAM of processes that are no pods of Headroom, by UUID of a GPU. */
  readonly foreignMib: (uuid: string) => Mib
}

/** What an agent reports. */
export type AgentGpus = Pick<AgentLink, 'gpus' | 'foreignMib'>

/** Reason of the condition Ready while an agent has said which GPUs there are. */
export const REPORTED = 'GPUsReported'

/**
 * 1. What the agent reports.
 * 2. What an agent has reported last, while none does.
 * 3. The annotation of the node.
 * None without the label that gives the GPUs to Headroom.
 */
export function nodeGpus(node: Node | null, agent: AgentGpus, gpuNode: KubeObject | null): NodeGpus {
  const { gpus: last = [] } = (gpuNode?.['status'] ?? {}) as GPUNodeStatus
  const foreignMib = (uuid: string): Mib =>
    agent.foreignMib(uuid) ?? last.find((gpu) => gpu.uuid === uuid)?.foreignMib ?? 0
  const found = (gpus: readonly DeclaredGpu[], fault: string | null, areReported: boolean): NodeGpus => {
    return { gpus, fault, areReported, foreignMib }
  }
  if (node === null || !isEnabled(node.metadata)) return found([], null, false)
  const known = agent.gpus ?? lastReported(gpuNode)
  if (known !== null) {
    const twice = known.find(({ uuid }, place) => known.findIndex((each) => each.uuid === uuid) !== place)
    return twice === undefined
      ? found(known, null, true)
      : found([], `The agent reports GPU ${twice.uuid} twice.`, true)
  }
  const declared = declaredGpus(node.metadata)
  return declared.ok
    ? found(declared.value, null, false)
    : found([], declared.faults.map(faultText).join('; '), false)
}

function lastReported(gpuNode: KubeObject | null): readonly DeclaredGpu[] | null {
  const { conditions = [], gpus = [] } = (gpuNode?.['status'] ?? {}) as GPUNodeStatus
  if (!conditions.some(({ type, reason }) => type === 'Ready' && reason === REPORTED)) return null
  return gpus.map(({ uuid, model = '', physicalMib: vramMib }) => ({ uuid, model, vramMib }))
}
