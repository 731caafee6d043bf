/** The resources of the stack, the agents, and labels that are ignored. */
import { type StructuralSchema, schemaOf } from '../../operator/contract/crd.ts'
import { API_GROUP, API_VERSION } from '../../operator/contract/names.ts'
import { GPU_NODE, OWN_KINDS } from '../../operator/contract/policies.ts'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import {
  ADMITTED_CONDITION,
  NODE_LABELS,
  RUNTIME_LABEL,
  RUNTIME_VALUE,
} from '../../operator/contract/names.ts'
import { allObjects } from '../../operator/ports/all-objects.ts'
import { NODES, ownResource, PODS, RESOURCE_DEFINITIONS } from '../../operator/ports/kube-api.ts'
import { type Check, fail, ok, warn } from '../doctor/check.ts'
import { seen } from './doctor-seen.ts'
import type { ClusterApi } from './kubectl-api.ts'
import { type GpuNode, gpuNodes } from './nodes.ts'

const APPLY = 'kubectl apply --server-side -f deploy/helm/headroom/files/crds'

export async function resourceChecks(api: ClusterApi): Promise<readonly Check[]> {
  const checks: Check[] = []
  for (const own of OWN_KINDS) {
    const definition = `${own.plural}.${API_GROUP}`
    const found = await seen(() => api.get(RESOURCE_DEFINITIONS, { name: definition }))
    if (found.kind === 'denied') checks.push(found.check(own.kind))
    else if (found.kind === 'absent')
      checks.push(fail(own.kind, `the resource ${definition} is missing`, APPLY))
    else {
      const missing = missingFields(schemaOf(own), servedSchema(found.value['spec']))
      checks.push(
        missing.length === 0
          ? ok(own.kind, 'has every field of this version')
          : fail(own.kind, `is older than this command: it lacks ${missing.join(', ')}`, APPLY),
      )
    }
  }
  return checks
}

interface Definition {
  readonly versions?: readonly {
    readonly name: string
    readonly schema?: { readonly openAPIV3Schema?: StructuralSchema }
  }[]
}

function servedSchema(spec: unknown): StructuralSchema | undefined {
  const { versions = [] } = (spec ?? {}) as Definition
  return versions.find(({ name }) => name === API_VERSION)?.schema?.openAPIV3Schema
}

/** The outermost ones. */
function missingFields(
  wanted: StructuralSchema,
  found: StructuralSchema | undefined,
  path = '',
): readonly string[] {
  if (wanted.items !== undefined) return missingFields(wanted.items, found?.items, `${path}[]`)
  return Object.entries(wanted.properties ?? {}).flatMap(([name, field]): readonly string[] => {
    const at = path === '' ? name : `${path}.${name}`
    const theirs = found?.properties?.[name]
    return theirs === undefined ? [at] : missingFields(field, theirs, at)
  })
}

// ---- nodes ----

export async function nodeChecks(api: ClusterApi): Promise<readonly Check[]> {
  if ((await seen(() => api.list(ownResource(GPU_NODE), { limit: 1 }))).kind !== 'found') return []
  const known = await gpuNodes(api)
  const selector = `${NODE_LABELS.enabled}=true`
  const enabled = await seen(() => allObjects(api, NODES, { labelSelector: selector }))
  if (enabled.kind === 'denied') return [enabled.check('nodes'), ...known.flatMap(ofNode)]
  const names = enabled.kind === 'found' ? enabled.value.map(({ metadata }) => metadata.name ?? '') : []
  const unknown = names.filter((name) => !known.some((node) => node.name === name))
  return [
    names.length === 0
      ? warn('nodes', 'no node is labeled for Headroom', `kubectl label node NODE ${selector}`)
      : unknown.length > 0
        ? fail(
            'nodes',
            `the operator has not reported the state of ${unknown.join(', ')}`,
            'see the checks "operator" and "leader"',
          )
        : ok('nodes', `${names.length} with the label ${selector}`),
    ...known.filter(({ name }) => names.includes(name)).flatMap(ofNode),
    ...(await stoppedPods(api, known)),
  ]
}

const IGNORED = ['InvalidOverride', 'OverrideConflict']

function ofNode({ name, status: { conditions = [] } }: GpuNode): readonly Check[] {
  const failing = conditions.flatMap(({ type, status, message }): Check[] => {
    if (status === 'True') return []
    if (type === 'Ready') return [fail(`node ${name}`, message, 'start its agent, or correct its annotation')]
    if (type !== 'AgentReady') return []
    return [
      fail(
        `agent of ${name}`,
        message.replace(/\.$/, ''),
        'check the pod of DaemonSet headroom-agent on this node',
      ),
    ]
  })
  const ignored = conditions.filter(({ type, status }) => IGNORED.includes(type) && status === 'True')
  const warnings = ignored.map(({ message }) =>
    warn(`node ${name}`, message, 'correct the label or the policy'),
  )
  const all = [...failing, ...warnings]
  return all.length === 0 ? [ok(`node ${name}`, 'its GPUs and its agent are ready')] : all
}

/** Swapped out where nothing can bring them back. */
async function stoppedPods(api: ClusterApi, known: readonly GpuNode[]): Promise<readonly Check[]> {
  const labelSelector = `${RUNTIME_LABEL}=${RUNTIME_VALUE}`
  const found = await seen(() => allObjects(api, PODS, { labelSelector }))
  if (found.kind !== 'found') return []
  const silent = new Set(
    known
      .filter(({ status }) => status.conditions?.some((c) => c.type === 'AgentReady' && c.status !== 'True'))
      .map(({ name }) => name),
  )
  return (found.value as unknown as readonly Pod[])
    .filter(({ spec, status }) => {
      const admitted = status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)
      return silent.has(spec.nodeName ?? '') && admitted?.reason === 'SwappedOut'
    })
    .map(({ metadata, spec }) =>
      fail(
        `pod ${metadata.namespace ?? ''}/${metadata.name ?? ''}`,
        `is stopped, and the agent on node ${spec.nodeName ?? ''} is not reporting`,
        'it resumes once the agent reports again',
      ),
    )
}
