/**
 * Which nodes a pod may run on by its own fields, as the scheduler of Kubernetes decides it: nodeSelector,
 * required node affinity, taints and `unschedulable`. What depends on other pods is left to the scheduler.
 */
import { groupOf } from '../contract/group.ts'
import type {
  Node,
  NodeRequirement,
  NodeSelectorTerm,
  Pod,
  PodSpec,
  Taint,
  Toleration,
} from '../contract/kubernetes.ts'

const UNSCHEDULABLE: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

export function admitsNode({ metadata, spec }: Pod, node: Node): boolean {
  const labels = node.metadata.labels ?? {}
  // As groups of the controller: a node of a group runs only pods of that group.
  if (groupOf(metadata) !== groupOf(node.metadata)) return false
  const isSelected = Object.entries(spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value)
  return isSelected && isInAffinity(spec, node) && isTolerated(spec, node)
}

/** The fields that decide, as text: pods with the same text may run on the same nodes. */
export function constraintsOf({ metadata, spec }: Pod): string {
  const selector = Object.entries(spec.nodeSelector ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const affinity = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? null
  const tolerations = (spec.tolerations ?? []).map(({ key, operator, value, effect }) => [
    key,
    operator,
    value,
    effect,
  ])
  return JSON.stringify([groupOf(metadata), selector, affinity, tolerations])
}

/** One of the terms; a term without requirements matches nothing. */
function isInAffinity({ affinity }: PodSpec, node: Node): boolean {
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return required === undefined || required.nodeSelectorTerms.some((term) => isInTerm(term, node))
}

function isInTerm(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  { metadata }: Node,
): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false
  const labels = metadata.labels ?? {}
  return (
    matchExpressions.every((each) => isMet(each, labels[each.key])) &&
    matchFields.every((each) => each.key === 'metadata.name' && isMet(each, metadata.name))
  )
}

function isMet({ operator, values = [] }: NodeRequirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
      return isWhole(value) && isWhole(values[0]) && BigInt(value) > BigInt(values[0])
    case 'Lt':
      return isWhole(value) && isWhole(values[0]) && BigInt(value) < BigInt(values[0])
    default:
      return false
  }
}

function isWhole(text: string | undefined): text is string {
  return text !== undefined && /^-?\d{1,19}$/.test(text)
}

function isTolerated({ tolerations = [] }: PodSpec, { spec = {} }: Node): boolean {
  const taints = [...(spec.taints ?? []), ...(spec.unschedulable === true ? [UNSCHEDULABLE] : [])]
  return taints
    .filter(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute')
    .every((taint) => tolerations.some((each) => tolerates(each, taint)))
}

function tolerates({ key, operator = 'Equal', value = '', effect }: Toleration, taint: Taint): boolean {
  if (effect !== undefined && effect !== '' && effect !== taint.effect) return false
  if (operator === 'Exists') return key === undefined || key === '' || key === taint.key
  return key === taint.key && value === (taint.value ?? '')
}
