/** The pods of the agents: a DaemonSet has one template for all nodes, and each node has its percentage. */
import type { Percent } from '../../protocol/units.ts'
import type { Pod } from '../contract/kubernetes.ts'
import { PERCENT_VARIABLE } from '../contract/names.ts'
import { withVariable } from './container-fields.ts'

/** Returns the node to which its controller has pinned the pod; null: none. */
export function pinnedNodeOf({ spec }: Pod): string | null {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const [term, ...others] = required?.nodeSelectorTerms ?? []
  if (term === undefined || others.length > 0) return null
  const named = term.matchFields?.find(({ key, operator }) => key === 'metadata.name' && operator === 'In')
  const [name = null, ...more] = named?.values ?? []
  return more.length === 0 ? name : null
}

/** The percentage that applies to the node now. A later change starts no agent again. */
export function withPercent(pod: Pod, percent: Percent): Pod {
  const [name] = PERCENT_VARIABLE
  const containers = pod.spec.containers.map((each) => withVariable(each, { name, value: String(percent) }))
  return { ...pod, spec: { ...pod.spec, containers } }
}
