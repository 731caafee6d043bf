/** The API server in memory with the kinds that tests use. */
import type { Clock } from '../../../controller/ports/clock.ts'
import { schemaOf } from '../../../operator/contract/crd.ts'
import { CLUSTER_GPU_POLICY, GPU_NODE, VENDOR_NODE_POLICY } from '../../../operator/contract/policies.ts'
import { MemoryApi, type ServedKind } from '../../../operator/memory-api/memory-api.ts'
import { OWN_RULES } from '../../../operator/memory-api/own-rules.ts'
import { PodConditions } from '../../../operator/placing/pod-conditions.ts'
import type { PodBindingsOptions } from '../../../operator/placing/pod-bindings.ts'
import {
  CONFIG_MAPS,
  DAEMON_SETS,
  DEPLOYMENTS,
  EVENTS,
  type KubeApi,
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

export function memoryApi(maxEvents?: number): MemoryApi {
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
  })
}

/** Writes conditions as the operator does, without events. */
export function announcer(api: KubeApi, clock: Clock): PodBindingsOptions['announce'] {
  const conditions = new PodConditions(api, () => clock.now())
  return async (pod, admission) => void (await conditions.write(pod, admission))
}

interface PatchAsked {
  readonly name: string
  readonly subresource: string | undefined
}

/** Holds these patches until `pass`. `asked`: the name, and the subresource, of each patch so far. */
export function holdPatches(api: MemoryApi, isHeld: (asked: PatchAsked) => boolean) {
  const { promise, resolve: pass } = Promise.withResolvers<void>()
  const asked: string[] = []
  const patch = api.patch.bind(api)
  api.patch = async (kind, key, body, options = {}) => {
    const { subresource } = options
    asked.push(subresource === undefined ? key.name : `${key.name} ${subresource}`)
    if (isHeld({ name: key.name, subresource })) await promise
    return patch(kind, key, body, options)
  }
  return { asked, pass }
}
