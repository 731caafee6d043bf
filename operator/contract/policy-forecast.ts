/**
 * What a policy would change, for `kubectl apply --dry-run=server`: limits of nodes, and claims beyond them.
 * From the GPUNodes alone, so that admission reads no pods.
 */
import { commitLimitMib, residentCapacityMib } from '../../controller/model/vram.ts'
import type { Mib, Percent } from '../../protocol/units.ts'
import { HELM_PERCENT } from './names.ts'
import { nodeOfPolicy } from './overcommit.ts'
import {
  CLUSTER_GPU_POLICY,
  type ClusterGPUPolicy,
  type GPUNodeStatus,
  VENDOR_NODE_POLICY,
  type VendorNodePolicy,
} from './policies.ts'

export interface ForecastNode {
  readonly name: string
  readonly status: GPUNodeStatus
}

const MAX_NAMED = 8
const MIB_PER_GIB = 1024

/** Lines for the person who asks; the first says what the forecast is. */
export function policyForecast(
  kind: string,
  policy: ClusterGPUPolicy | VendorNodePolicy,
  nodes: readonly ForecastNode[],
): readonly string[] {
  const percent = percentOf(kind, policy)
  if (percent === null)
    return [`forecast: no limits. Without a percentage the next source applies, see ${HELM_PERCENT}.`]
  const reached = nodes.filter((node) => isReached(kind, policy, node))
  if (reached.length === 0) return ['forecast: it applies to no node that the operator has reported.']
  const reserveMib = policy.spec.safetyReserveMib ?? 0
  const before = sum(reached, ({ status }) => status.effectiveMib ?? 0)
  const after = sum(reached, ({ status }) =>
    sum(limitsOf(status, percent, reserveMib), ({ limitMib }) => limitMib),
  )
  const over = reached.flatMap(({ name, status }) => {
    const mib = sum(limitsOf(status, percent, reserveMib), (gpu) =>
      Math.max(0, gpu.committedMib - gpu.limitMib),
    )
    return mib === 0 ? [] : [`${name} (${gib(mib)})`]
  })
  const agentless = reached.filter(({ status }) => percent > 0 && !hasAgent(status)).map(({ name }) => name)
  return [
    `forecast: ${percent}% on ${counted(reached.length, 'node')}; ` +
      `schedulable VRAM ${gib(before)} now, ${gib(after)} then.`,
    ...(over.length === 0
      ? []
      : [
          `forecast: pods there hold more than the new limit on ${listed(over)}: ` +
            'they stay, and no pod is added.',
        ]),
    ...(agentless.length === 0
      ? []
      : [`forecast: no agent reports on ${listed(agentless)}: overcommit has no effect there.`]),
  ]
}

function percentOf(kind: string, policy: ClusterGPUPolicy | VendorNodePolicy): Percent | null {
  return kind === CLUSTER_GPU_POLICY.kind
    ? ((policy as ClusterGPUPolicy).spec.defaultVramOvercommitPercent ?? null)
    : ((policy as VendorNodePolicy).spec.vramOvercommitPercent ?? null)
}

/** A policy of the cluster reaches nodes without a percentage of their own. */
function isReached(
  kind: string,
  policy: ClusterGPUPolicy | VendorNodePolicy,
  { name, status }: ForecastNode,
): boolean {
  if (kind === VENDOR_NODE_POLICY.kind) return nodeOfPolicy(policy as VendorNodePolicy) === name
  return ['ClusterGPUPolicy', 'Helm'].includes(status.overcommit?.source ?? '')
}

function limitsOf(
  { gpus = [], claims = [] }: GPUNodeStatus,
  percent: Percent,
  reserveMib: Mib,
): readonly { readonly limitMib: Mib; readonly committedMib: Mib }[] {
  return gpus.map(({ uuid, physicalMib, foreignMib }) => ({
    limitMib: commitLimitMib(physicalMib, percent, residentCapacityMib(physicalMib, reserveMib, foreignMib)),
    committedMib: sum(
      claims.filter(({ gpuUuids }) => gpuUuids.includes(uuid)),
      ({ vramMib }) => vramMib,
    ),
  }))
}

function hasAgent({ conditions = [] }: GPUNodeStatus): boolean {
  return conditions.some(({ type, status }) => type === 'AgentReady' && status === 'True')
}

function listed(names: readonly string[]): string {
  const more = names.length - MAX_NAMED
  return `${names.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

function gib(mib: Mib): string {
  return `${Math.round(mib / MIB_PER_GIB)} GiB`
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}
