/** `kubectl headroom explain POD`: what the pod waits for, or where it is, with the numbers behind it. */
import type { Node, Pod } from '../../operator/contract/kubernetes.ts'
import {
  ADMITTED_CONDITION,
  POD_ANNOTATIONS,
  RUNTIME_LABEL,
  RUNTIME_VALUE,
  SCHEDULING_GATE,
} from '../../operator/contract/names.ts'
import { faultText } from '../../operator/contract/field-fault.ts'
import { withGroup } from '../../operator/contract/group.ts'
import { classNamed, classOfPod } from '../../operator/contract/pod-class.ts'
import { podRequestOf, type PodRequest, runtimeOf } from '../../operator/contract/pod-request.ts'
import type { GPUNodeStatus, GpuStatus } from '../../operator/contract/policies.ts'
import { admitsNode } from '../../operator/placing/admitted-nodes.ts'
import { isEnabled } from '../../operator/placing/declared-gpus.ts'
import { gpusOf, stageOf } from '../../operator/placing/pod-task.ts'
import { allObjects } from '../../operator/ports/all-objects.ts'
import {
  KubeError,
  type KubeObject,
  NAMESPACES,
  NODES,
  NOT_FOUND,
  PODS,
  PRIORITY_CLASSES,
  type ResourceKind,
} from '../../operator/ports/kube-api.ts'
import { CommandFailure, EXIT_CONFLICT, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { age, size } from '../output/figures.ts'
import type { OutputFormat } from '../output/formats.ts'
import { type Field, type Out, printOne } from '../output/table.ts'
import { type ClusterApi, type KubectlOptions, withCluster } from './kubectl-api.ts'
import { type GpuNode, gpuNodes, stateOf } from './nodes.ts'

export interface ExplainOptions extends KubectlOptions {
  readonly output: OutputFormat
}

export function explain(name: string, { output, ...cluster }: ExplainOptions): Promise<number> {
  return withCluster(cluster, (api) => explainPod(api, name, { output, now: Date.now() }))
}

interface ExplainHow {
  /** Else that of kubectl. */
  readonly namespace?: string
  readonly output: OutputFormat
  readonly now: number
  readonly out?: Out
}

export async function explainPod(
  api: ClusterApi,
  name: string,
  { output, now, out, ...where }: ExplainHow,
): Promise<number> {
  const bare = await podNamed(api, name, where.namespace)
  const { namespace = '' } = bare.metadata
  const owner = await readable(api, NAMESPACES, namespace)
  const pod = withGroup(bare, owner?.metadata ?? null)
  const told = { state: stateText(pod), ...admittedOf(pod) }
  const request = podRequestOf(pod)
  // Without the namespace it is not known which nodes admit a pod that waits.
  const nodes = owner === undefined && gpusOf(pod).length === 0 ? null : await nodesOf(api, pod)
  const className = request.ok ? await classText(api, pod) : ''
  const document = {
    ...{ namespace, name: pod.metadata.name ?? '', uid: pod.metadata.uid ?? '', ...told },
    request: request.ok ? request.value : null,
    ...{ node: pod.spec.nodeName ?? null, gpus: gpusOf(pod), nodes: nodes ?? [] },
  }
  const fields: readonly Field[] = [
    ['pod', `${namespace}/${pod.metadata.name ?? ''}`],
    ['state', told.since === null ? told.state : `${told.state} (${age(told.since, now) ?? ''})`],
    ['why', told.why],
    ['scheduler', schedulerText(pod)],
    ['requests', request.ok ? requestText(pod, request.value, className) : request.faults.map(faultText)],
    ...(nodes === null
      ? ([
          ['nodes', 'not shown: you do not have permission to read nodes, GPUNodes and the namespace'],
        ] as const)
      : [placesOf(pod, nodes)]),
  ]
  const shown = fields.filter(([, value]) => value !== null)
  await printOne(document, shown, output, out)
  return EXIT_OK
}

const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

/** @throws CommandFailure if it is not ours */
export async function podNamed(api: ClusterApi, given: string, namespace?: string): Promise<Pod> {
  const name = given.replace(/^pods?\//, '')
  if (!NAME.test(name)) throw new UsageError(`${JSON.stringify(given)} is not a valid pod name`)
  const key = namespace === undefined ? { name } : { namespace, name }
  const pod = (await api.get(PODS, key)) as unknown as Pod
  if (runtimeOf(pod.metadata).isOurs) return pod
  throw new CommandFailure(
    `Pod ${name} is not managed by Headroom: it does not have the label ${RUNTIME_LABEL}=${RUNTIME_VALUE}.`,
    EXIT_CONFLICT,
  )
}

function admittedOf({ status, metadata }: Pod): {
  readonly reason: string | null
  readonly why: string
  readonly since: string | null
} {
  const found = status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)
  if (found !== undefined)
    return {
      reason: found.reason ?? null,
      why: found.message ?? '',
      since: found.lastTransitionTime ?? null,
    }
  const why =
    'The operator has not reported a reason. Run `kubectl headroom doctor` to check whether it is running.'
  return { reason: null, why, since: metadata.creationTimestamp ?? null }
}

function stateText(pod: Pod): string {
  const { metadata, spec, status } = pod
  if (metadata.deletionTimestamp !== undefined) return 'is being deleted'
  switch (stageOf(pod)) {
    case 'over':
      return `has ended (${status?.phase ?? ''})`
    case 'foreign':
      return `is not placed by Headroom: its scheduler is ${spec.schedulerName ?? 'the default one'}`
    case 'held': {
      const gates = (spec.schedulingGates ?? []).filter(({ name }) => name !== SCHEDULING_GATE)
      return `is blocked by another controller with the gate ${gates.map(({ name }) => name).join(', ')}`
    }
    case 'waiting': {
      const isReserved = (spec.schedulingGates ?? []).length === 0
      return isReserved ? 'has reserved VRAM and waits to be bound to its node' : 'waits for VRAM'
    }
    case 'bound': {
      const isOut = admittedOf(pod).reason === 'SwappedOut'
      return `${isOut ? 'is swapped out' : 'is in VRAM'} on ${spec.nodeName ?? ''}`
    }
  }
}

/** Returns the message of the Kubernetes scheduler about CPU, memory, affinity and volumes. */
function schedulerText({ spec, status }: Pod): string | null {
  if ((spec.schedulingGates ?? []).length > 0 || spec.nodeName !== undefined) return null
  const found = status?.conditions?.find(({ type }) => type === 'PodScheduled')
  return found?.status === 'False' ? (found.message ?? null) : null
}

/** Its PriorityClass says it, which not every user may read. */
async function classText(api: ClusterApi, pod: Pod): Promise<string> {
  const { priorityClassName = '' } = pod.spec
  if (priorityClassName === '') return `P${classOfPod(pod, null)}`
  const found = await readable(api, PRIORITY_CLASSES, priorityClassName)
  return found === undefined && classNamed(priorityClassName, undefined) === null
    ? `the class of PriorityClass ${priorityClassName}`
    : `P${classOfPod(pod, found?.metadata ?? null)}`
}

/** Null: it does not exist. Undefined: the user may not read it. */
async function readable(
  api: ClusterApi,
  kind: ResourceKind,
  name: string,
): Promise<KubeObject | null | undefined> {
  try {
    return await api.get(kind, { name })
  } catch (error) {
    if (error instanceof KubeError && error.code === NOT_FOUND) return null
    if (error instanceof KubeError && error.code === 403) return undefined
    throw error
  }
}

function requestText(
  pod: Pod,
  { vramMib, gpus, isSwappable, staysInVram }: PodRequest,
  className: string,
): string {
  const annotations = pod.metadata.annotations ?? {}
  const never = annotations[POD_ANNOTATIONS.notSwappable]
  const swap = !isSwappable
    ? 'never swapped out'
    : never !== undefined
      ? `never swapped out (${never})`
      : staysInVram
        ? 'stays in VRAM (released)'
        : 'may be swapped out'
  const where = gpus === 1 ? 'one GPU' : `each of ${gpus} GPUs`
  return `${size(vramMib)} on ${where}, ${className}, ${swap}`
}

// ---- nodes ----

interface Place extends GpuNode {
  readonly doesAdmit: boolean
}

/** Null: the user may not read them. */
async function nodesOf(api: ClusterApi, pod: Pod): Promise<readonly Place[] | null> {
  try {
    const [known, nodes] = [await gpuNodes(api), await allObjects(api, NODES)]
    const admitting = new Set(
      (nodes as unknown as readonly Node[])
        .filter((node) => isEnabled(node.metadata) && admitsNode(pod, node))
        .map(({ metadata }) => metadata.name ?? ''),
    )
    return known.map((node) => ({ ...node, doesAdmit: admitting.has(node.name) }))
  } catch (error) {
    if (error instanceof KubeError && error.code === 403) return null
    throw error
  }
}

const MAX_PLACES = 8

/** Returns the GPUs of a bound pod, or the nodes that its selector, affinity and tolerations admit. */
function placesOf(pod: Pod, nodes: readonly Place[]): Field {
  const own = gpusOf(pod)
  if (own.length > 0) {
    const gpus = nodes.find(({ name }) => name === pod.spec.nodeName)?.status.gpus ?? []
    return ['GPUs', gpus.filter(({ uuid }) => own.includes(uuid)).map(gpuText)]
  }
  const admitting = nodes.filter(({ doesAdmit }) => doesAdmit)
  if (admitting.length === 0)
    return [
      'nodes',
      `no node accepts the pod (${nodes.length} checked): check its nodeSelector, affinity, tolerations ` +
        'and group',
    ]
  const lines = admitting.slice(0, MAX_PLACES).map((node) => {
    const state = stateOf(node)
    return `${node.name}: ${freeText(node.status)}${state === 'Ready' ? '' : `, ${state}`}`
  })
  const more = admitting.length - lines.length
  return ['nodes', more === 0 ? lines : [...lines, `and ${more} more`]]
}

/** Computed from the claims, because the sums of the status are up to ten seconds old. */
function freeText({ gpus = [], claims = [] }: GPUNodeStatus): string {
  const free = gpus.map(({ uuid, effectiveMib }) => {
    const here = claims.filter(({ gpuUuids }) => gpuUuids.includes(uuid))
    return effectiveMib - here.reduce((sum, { vramMib }) => sum + vramMib, 0)
  })
  return free.length === 0
    ? 'no GPUs'
    : `${size(Math.max(0, ...free))} free on the GPU with the most free VRAM`
}

function gpuText({ uuid, model, ...gpu }: GpuStatus): string {
  return (
    `${uuid}${model === undefined ? '' : ` (${model})`}: ${size(gpu.residentMib)} resident, ` +
    `${size(gpu.swappedOutMib)} swapped out, ${size(gpu.committedMib)} committed of ${size(gpu.effectiveMib)}`
  )
}
