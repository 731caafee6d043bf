/**
 * Which percentage is in effect on a node of the cluster, and from where.
 * 1. The VendorNodePolicy of the node.
 * 2. The label of the node.
 * 3. The ClusterGPUPolicy.
 * 4. The Helm value.
 * A source that is absent or has no percentage gives way to the next. A label that is not a percentage is
 * ignored, so that nothing of Headroom's blocks an update of a node (decision 0160).
 */
import type { Percent } from '../../protocol/units.ts'
import { type FieldFault, faultText, quoted } from './field-fault.ts'
import type { ObjectMeta } from './kubernetes.ts'
import { CLUSTER_POLICY_NAME, HELM_PERCENT, NODE_LABELS } from './names.ts'
import { percentOfField, percentOfText } from './percent.ts'
import type { ClusterGPUPolicy, PercentSource, VendorNodePolicy } from './policies.ts'

export interface OvercommitSources {
  readonly node: ObjectMeta
  /** All of the cluster. */
  readonly nodePolicies: readonly VendorNodePolicy[]
  readonly clusterPolicy: ClusterGPUPolicy | null
  readonly helmPercent: Percent
}

export interface NodeOvercommit {
  readonly percent: Percent
  readonly source: PercentSource
  readonly findings: readonly OvercommitFinding[]
}

/** Becomes a condition of the node's GPUNode, and one event. */
export interface OvercommitFinding {
  readonly type: 'InvalidOverride' | 'OverrideConflict'
  readonly message: string
}

const LABEL = NODE_LABELS.overcommitPercent
const LABEL_PATH = `metadata.labels[${LABEL}]`

export function nodeOvercommit(sources: OvercommitSources): NodeOvercommit {
  const { node, helmPercent } = sources
  const policy = policyOfNode(node.name ?? '', sources.nodePolicies)
  const ofPolicy = policy?.spec.vramOvercommitPercent
  const label = node.labels?.[LABEL]
  const ofLabel = label === undefined ? null : percentOfText(LABEL_PATH, label)
  const findings: OvercommitFinding[] = []
  if (ofLabel?.ok === false)
    findings.push({ type: 'InvalidOverride', message: `${faultText(ofLabel.faults[0]!)}. It is ignored.` })
  if (policy !== null && ofPolicy !== undefined) {
    if (ofLabel?.ok === true && ofLabel.value !== ofPolicy)
      findings.push({
        type: 'OverrideConflict',
        message:
          `VendorNodePolicy ${policy.metadata.name ?? ''} sets ${ofPolicy}, but label ${LABEL} ` +
          `sets ${ofLabel.value}. The policy applies.`,
      })
    return { percent: ofPolicy, source: 'VendorNodePolicy', findings }
  }
  if (ofLabel?.ok === true) return { percent: ofLabel.value, source: 'NodeLabel', findings }
  const ofCluster = sources.clusterPolicy?.spec.defaultVramOvercommitPercent
  return ofCluster === undefined
    ? { percent: helmPercent, source: 'Helm', findings }
    : { percent: ofCluster, source: 'ClusterGPUPolicy', findings }
}

/**
 * Of several policies for one node, which admission refuses except when they are created at the same moment:
 * 1. The oldest.
 * 2. The first by name.
 */
export function policyOfNode(
  nodeName: string,
  policies: readonly VendorNodePolicy[],
): VendorNodePolicy | null {
  const own = policies.filter((policy) => nodeOfPolicy(policy) === nodeName)
  return own.reduce<VendorNodePolicy | null>(
    (first, each) => (first === null || isBefore(each, first) ? each : first),
    null,
  )
}

export function nodeOfPolicy({ metadata, spec }: VendorNodePolicy): string {
  return spec.nodeName ?? metadata.name ?? ''
}

/** Returns the faults of a policy that is being created or changed. */
export function nodePolicyFaults(
  policy: VendorNodePolicy,
  others: readonly VendorNodePolicy[],
): readonly FieldFault[] {
  const path = 'spec.vramOvercommitPercent'
  const percent = policy.spec.vramOvercommitPercent
  const parsed = percent === undefined ? null : percentOfField(path, percent)
  if (parsed?.ok === false) return parsed.faults
  const node = nodeOfPolicy(policy)
  const first = others.find(
    (other) => other.metadata.name !== policy.metadata.name && nodeOfPolicy(other) === node,
  )
  if (first === undefined) return []
  const name = first.metadata.name ?? ''
  const message = `node ${quoted(node)} already has the VendorNodePolicy ${name}; change that one`
  return [{ path: 'spec.nodeName', message }]
}

export function clusterPolicyFaults({ metadata, spec }: ClusterGPUPolicy): readonly FieldFault[] {
  if (metadata.name !== CLUSTER_POLICY_NAME)
    return [{ path: 'metadata.name', message: `must be ${CLUSTER_POLICY_NAME}: the cluster has one policy` }]
  const percent = spec.defaultVramOvercommitPercent
  const parsed = percent === undefined ? null : percentOfField('spec.defaultVramOvercommitPercent', percent)
  return parsed?.ok === false ? parsed.faults : []
}

/** Reads the Helm value as it reaches the operator. */
export function helmPercentOf(text: string) {
  return percentOfText(HELM_PERCENT, text)
}

function isBefore(a: VendorNodePolicy, b: VendorNodePolicy): boolean {
  const [createdA, createdB] = [a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? '']
  if (createdA !== createdB) return createdA < createdB
  return (a.metadata.name ?? '') < (b.metadata.name ?? '')
}
