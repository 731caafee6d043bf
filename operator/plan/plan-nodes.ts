/** GPUs of the nodes of a cluster, from the labels of NVIDIA's GPU feature discovery. */
import type { Mib } from '../../protocol/units.ts'
import { areNamespacesKnown, groupLabelOf } from './plan-labels.ts'
import { fieldsAt, textAt, wholeAt } from './plan-fields.ts'

export interface PlanNode {
  readonly name: string
  readonly model: string
  readonly gpus: number
  readonly vramMib: Mib
  /** Null: none, or the namespaces are not known. */
  readonly group: string | null
}

const COUNT_LABEL = 'nvidia.com/gpu.count'
const MEMORY_LABEL = 'nvidia.com/gpu.memory'
const MODEL_LABEL = 'nvidia.com/gpu.product'
const REPLICAS_LABEL = 'nvidia.com/gpu.replicas'
const GPU_RESOURCE = 'nvidia.com/gpu'
/** Maximum number of GPUs of a node in a scenario. */
const MAX_NODE_GPUS = 16
const MAX_MODEL_LENGTH = 63

/**
 * In the order of names. Leaves out, with a note, nodes whose GPUs are not known.
 */
export function planNodes(
  objects: readonly unknown[],
  vramByModel: ReadonlyMap<string, Mib>,
): { readonly nodes: readonly PlanNode[]; readonly notes: readonly string[] } {
  const nodes: PlanNode[] = []
  const notes: string[] = []
  const hasGroups = areNamespacesKnown(objects)
  for (const object of objects) {
    if (textAt(object, 'kind') !== 'Node') continue
    const name = textAt(object, 'metadata', 'name') ?? ''
    const read = readNode(name, object, vramByModel)
    if (typeof read === 'string') notes.push(`Left out: node ${name}: ${read}.`)
    else if (read !== null) nodes.push(hasGroups ? read : { ...read, group: null })
  }
  return { nodes: nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1)), notes }
}

/** Null without GPUs; a text says why the node cannot be planned. */
function readNode(
  name: string,
  object: unknown,
  vramByModel: ReadonlyMap<string, Mib>,
): PlanNode | string | null {
  const labels = fieldsAt(object, 'metadata', 'labels')
  const gpus = gpuCount(object, labels)
  if (gpus === 0) return null
  if (!/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/.test(name)) return 'a name of at most 63 characters is needed'
  if (gpus > MAX_NODE_GPUS) return `${gpus} GPUs; a plan supports at most ${MAX_NODE_GPUS} per node`
  const model = (textAt(labels, MODEL_LABEL) ?? 'GPU').slice(0, MAX_MODEL_LENGTH)
  const vramMib = wholeAt(labels, MEMORY_LABEL) ?? vramByModel.get(model)
  if (vramMib === undefined || vramMib === 0)
    return `it has no label ${MEMORY_LABEL}; add --vram-map ${model}=MIB`
  return { name, model, gpus, vramMib, group: groupLabelOf(object) ?? null }
}

/** Time-slicing multiplies the resource; the label counts GPUs. */
function gpuCount(object: unknown, labels: unknown): number {
  const physical = wholeAt(labels, COUNT_LABEL)
  if (physical !== undefined) return physical
  const offered = wholeAt(object, 'status', 'capacity', GPU_RESOURCE) ?? 0
  return Math.ceil(offered / Math.max(1, wholeAt(labels, REPLICAS_LABEL) ?? 1))
}
