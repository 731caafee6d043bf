/** GPU requests of the pods of a cluster, whatever shares the GPUs today. */
import { MAX_TASK_GPUS, MAX_VRAM_MIB } from '../../protocol/limits.ts'
import type { Mib, Priority } from '../../protocol/units.ts'
import { POD_ANNOTATIONS } from '../contract/names.ts'
import { quantityMib } from '../contract/quantity.ts'
import { type ClusterLabels, clusterLabels, groupLabelOf } from './plan-labels.ts'
import { fieldsAt, listAt, textAt, wholeAt } from './plan-fields.ts'
import type { PlanNode } from './plan-nodes.ts'

export interface PlannedPod {
  readonly namespace: string
  readonly name: string
  readonly gpus: number
  /** VRAM on each GPU; null: whole GPUs. */
  readonly vramMib: Mib | null
  readonly isSwappable: boolean
  readonly priority: Priority
  /** Null: none, or the namespaces are not known. */
  readonly group: string | null
  readonly isRunning: boolean
  /** Field with the request. */
  readonly from: string
}

/** The pods that are running or waiting, in the order in which they are submitted. */
export function planPods(
  objects: readonly unknown[],
  nodes: readonly PlanNode[],
  podVramMib: Mib | null,
): { readonly pods: readonly PlannedPod[]; readonly notes: readonly string[] } {
  const labels = clusterLabels(objects)
  const notes = [...labels.notes]
  const largestMib = Math.max(...nodes.map(({ vramMib }) => vramMib))
  const found = objects
    .filter((object) => textAt(object, 'kind') === 'Pod' && isOpen(object))
    .flatMap((object) => {
      const pod = readPod(object, { nodes, largestMib, podVramMib, labels })
      if (pod === null) return []
      if (pod.gpus <= MAX_TASK_GPUS && (pod.vramMib ?? 0) <= MAX_VRAM_MIB)
        return [{ pod, order: orderOf(object, pod) }]
      notes.push(`Left out: pod ${pod.namespace}/${pod.name}: ${pod.from} is beyond any GPU server.`)
      return []
    })
    .toSorted((a, b) => compared(a.order, b.order))
    .map(({ pod }) => pod)
  const whole = found.filter(({ vramMib }) => vramMib === null)
  if (whole.length > 0)
    notes.push(
      `${whole.length} of ${found.length} pods do not state how much VRAM they need: they take whole GPUs, ` +
        'which overcommit does not change. Add --pod-vram to assume an amount.',
    )
  const assumed = found.filter(({ from }) => from === '--pod-vram')
  if (assumed.length > 0)
    notes.push(`Assumed: ${assumed.length} pods need ${podVramMib} MiB on each GPU (--pod-vram).`)
  const tooLarge = found.filter(({ vramMib }) => vramMib !== null && vramMib > largestMib)
  for (const { namespace, name, vramMib } of tooLarge)
    notes.push(`Pod ${namespace}/${name} needs ${vramMib} MiB, more than any GPU has: it is never placed.`)
  for (const { namespace, name, group } of found)
    if (group !== null && nodes.every((node) => node.group !== group))
      notes.push(`Pod ${namespace}/${name}: no node has its group ${group}: it is never placed.`)
  return { pods: found, notes }
}

/** A pod that has ended holds no VRAM. */
function isOpen(object: unknown): boolean {
  const phase = textAt(object, 'status', 'phase')
  return phase !== 'Succeeded' && phase !== 'Failed'
}

/**
 * 1. Pods that run, because they hold their GPUs already.
 * 2. Higher priority.
 * 3. Creation.
 * 4. UID, then namespace and name.
 */
function orderOf(object: unknown, { isRunning, priority, namespace, name }: PlannedPod): readonly string[] {
  const created = textAt(object, 'metadata', 'creationTimestamp') ?? ''
  const uid = textAt(object, 'metadata', 'uid') ?? ''
  return [isRunning ? '0' : '1', String(priority), created, uid, namespace, name]
}

function compared(a: readonly string[], b: readonly string[]): number {
  const place = a.findIndex((text, i) => text !== b[i])
  if (place === -1) return 0
  return (a[place] as string) < (b[place] as string) ? -1 : 1
}

interface Surroundings {
  readonly nodes: readonly PlanNode[]
  /** VRAM of the largest GPU. */
  readonly largestMib: Mib
  readonly podVramMib: Mib | null
  readonly labels: ClusterLabels
}

function readPod(
  object: unknown,
  { nodes, largestMib, podVramMib, labels }: Surroundings,
): PlannedPod | null {
  const annotations = fieldsAt(object, 'metadata', 'annotations')
  const nodeName = textAt(object, 'spec', 'nodeName')
  const onNode = nodes.find(({ name }) => name === nodeName)
  const need = needOf(object, annotations, onNode?.vramMib ?? largestMib, podVramMib)
  const namespace = textAt(object, 'metadata', 'namespace') ?? 'default'
  return need === null
    ? null
    : {
        ...{ ...need, namespace },
        name: textAt(object, 'metadata', 'name') ?? '',
        isSwappable:
          textAt(annotations, POD_ANNOTATIONS.swapFromVram) !== 'false' &&
          textAt(annotations, POD_ANNOTATIONS.notSwappable) === undefined,
        priority: priorityOf(object, labels),
        group: groupOf(object, namespace, labels),
        isRunning: textAt(object, 'status', 'phase') === 'Running',
      }
}

type Need = Pick<PlannedPod, 'gpus' | 'vramMib' | 'from'>

const FRACTION = /^(?:0?\.\d{1,6}|1(?:\.0+)?)$/

/**
 * The first field that says it.
 * 1. Headroom's annotation.
 * 2. Memory per GPU as HAMi's resource, or as an annotation of KAI and Run:ai.
 * 3. A fraction of a GPU, as an annotation of KAI and Run:ai.
 * 4. Whole GPUs.
 */
function needOf(object: unknown, annotations: unknown, gpuMib: Mib, podVramMib: Mib | null): Need | null {
  const gpus = requested(object, 'nvidia.com/gpu')
  const own = quantityMib(textAt(annotations, POD_ANNOTATIONS.podVram) ?? '')
  if (own !== null && own > 0)
    return {
      gpus: wholeAt(annotations, POD_ANNOTATIONS.gpuCount) ?? 1,
      vramMib: own,
      from: POD_ANNOTATIONS.podVram,
    }
  const ofHami = requested(object, 'nvidia.com/gpumem')
  if (ofHami > 0) return { gpus: Math.max(1, gpus), vramMib: ofHami, from: 'nvidia.com/gpumem' }
  const ofKai = wholeAt(annotations, 'gpu-memory') ?? 0
  if (ofKai > 0) return { gpus: 1, vramMib: ofKai, from: 'gpu-memory' }
  const fraction = textAt(annotations, 'gpu-fraction') ?? ''
  if (FRACTION.test(fraction) && Number(fraction) > 0)
    return { gpus: 1, vramMib: Math.ceil(Number(fraction) * gpuMib), from: 'gpu-fraction' }
  if (gpus === 0) return null
  return { gpus, vramMib: podVramMib, from: podVramMib === null ? 'nvidia.com/gpu' : '--pod-vram' }
}

/** Containers run at the same time; init containers before them. */
function requested(object: unknown, resource: string): number {
  const of = (list: string): readonly number[] =>
    listAt(object, 'spec', list).map(
      (container) =>
        wholeAt(container, 'resources', 'limits', resource) ??
        wholeAt(container, 'resources', 'requests', resource) ??
        0,
    )
  const sum = of('containers').reduce((total, each) => total + each, 0)
  return Math.max(sum, ...of('initContainers'))
}

/** Otherwise Kubernetes' priorities have no classes: above 0 is P1, below 0 is P3. */
function priorityOf(object: unknown, { classes }: ClusterLabels): Priority {
  const named = classes.get(textAt(object, 'spec', 'priorityClassName') ?? '')
  if (named !== undefined) return named
  const value = fieldsAt(object, 'spec')['priority']
  if (typeof value !== 'number' || value === 0) return 2
  return value > 0 ? 1 : 3
}

function groupOf(object: unknown, namespace: string, { groups }: ClusterLabels): string | null {
  if (groups === null) return null
  const own = groupLabelOf(object)
  return own === undefined ? (groups.get(namespace) ?? null) : own
}
