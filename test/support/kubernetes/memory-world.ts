/** The API server in memory with the kinds that tests use. */
import { schemaOf } from '../../../operator/contract/crd.ts'
import { CLUSTER_GPU_POLICY, GPU_NODE, VENDOR_NODE_POLICY } from '../../../operator/contract/policies.ts'
import { MemoryApi, type MemoryApiOptions, type ServedKind } from '../../../operator/memory-api/memory-api.ts'
import { OWN_RULES } from '../../../operator/memory-api/own-rules.ts'
import {
  CONFIG_MAPS,
  DAEMON_SETS,
  DEPLOYMENTS,
  EVENTS,
  LEASES,
  MUTATING_WEBHOOKS,
  NAMESPACES,
  NODES,
  ownResource,
  PODS,
  PRIORITY_CLASSES,
  RESOURCE_DEFINITIONS,
  RUNTIME_CLASSES,
  SECRETS,
  VALIDATING_WEBHOOKS,
} from '../../../operator/ports/kube-api.ts'

export function memoryApi(maxEvents?: number, given: Partial<MemoryApiOptions> = {}): MemoryApi {
  const own = [CLUSTER_GPU_POLICY, VENDOR_NODE_POLICY, GPU_NODE].map((kind): ServedKind => {
    const rules = OWN_RULES[kind.kind]
    return {
      ...ownResource(kind),
      schema: schemaOf(kind),
      hasStatus: true,
      ...(rules === undefined ? {} : { rules }),
    }
  })
  let uid = 0
  return new MemoryApi({
    kinds: [
      ...[CONFIG_MAPS, EVENTS, LEASES, SECRETS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS],
      ...[NAMESPACES, PRIORITY_CLASSES, RESOURCE_DEFINITIONS, RUNTIME_CLASSES],
      ...[PODS, NODES, DAEMON_SETS, DEPLOYMENTS].map((kind) => ({ ...kind, hasStatus: true })),
      ...own,
    ],
    now: () => '2026-11-26T10:00:00Z',
    newUid: () => `00000000-0000-4000-8000-${String((uid += 1)).padStart(12, '0')}`,
    ...(maxEvents === undefined ? {} : { maxEvents }),
    ...given,
  })
}
