/**
 * The scenario of a running cluster, from its nodes and pods as `kubectl get -o json` prints them: of any
 * cluster, whatever shares its GPUs today. What such a list does not say is an option, and is told.
 */
import type { Mib, NoSwap } from '../../protocol/units.ts'
import { planNodes, type PlanNode } from './plan-nodes.ts'
import { type PlannedPod, planPods } from './plan-pods.ts'

export interface PlanOptions {
  /** VRAM of GPUs by the name of their model, where no label says it. */
  readonly vramByModel: ReadonlyMap<string, Mib>
  /** VRAM of pods that request whole GPUs; null: they use whole GPUs. */
  readonly podVramMib: Mib | null
  /** Activity model of the pods (docs/scenario-format.md). */
  readonly activity: string
  /** How long the plan runs, as a scenario writes it: `24h`. */
  readonly until: string
}

export interface ClusterPlan {
  /** The scenario, which is written as YAML. */
  readonly scenario: object
  readonly nodes: readonly PlanNode[]
  readonly pods: readonly PlannedPod[]
  /** Assumptions, omissions and values that were not understood, one sentence each. */
  readonly notes: readonly string[]
}

/** The input cannot be planned; the message names the object and the field. */
export class PlanError extends Error {
  override readonly name = 'PlanError'
}

export function clusterScenario(objects: readonly unknown[], options: PlanOptions): ClusterPlan {
  const { nodes, notes: ofNodes } = planNodes(objects, options.vramByModel)
  if (nodes.length === 0)
    throw new PlanError('no node with GPUs was found. Pass the output of `kubectl get nodes -o json`.')
  const { pods, notes: ofPods } = planPods(objects, nodes, options.podVramMib)
  if (pods.length === 0)
    throw new PlanError('no pod that uses a GPU was found. Pass the output of `kubectl get pods -A -o json`.')
  return {
    nodes,
    pods,
    notes: [...ofNodes, ...ofPods, ...assumptions(options)],
    scenario: {
      scenario: 'kubernetes-whatif',
      version: 1,
      clock: { until: options.until, drain: false },
      fleet: nodes.map(fleetEntry),
      workload: pods.map((pod, index) => ({ task: taskOf(pod, index, options) })),
    },
  }
}

function fleetEntry({ name, gpus, model, vramMib, group }: PlanNode): object {
  return { name, gpus, ...groupsOf(group), gpu: { model, vram_mib: vramMib, swap: 'stock-driver' } }
}

function groupsOf(group: string | null): object {
  return group === null ? {} : { groups: [group] }
}

function taskOf(pod: PlannedPod, index: number, { activity, until }: PlanOptions): object {
  const noswap: NoSwap = pod.isSwappable ? 0 : 1
  return {
    // The list is in order of submission; tasks of one instant keep it.
    id: `p${index + 1}`,
    name: `${pod.namespace}/${pod.name}`.slice(0, 256),
    at: '0s',
    gpus: pod.gpus,
    ...(pod.vramMib === null ? { gpu_mode: 'exclusive' } : { vram_mib: pod.vramMib }),
    noswap,
    priority: pod.priority,
    owner: pod.namespace,
    ...groupsOf(pod.group),
    run: until,
    activity,
  }
}

function assumptions({ activity, until }: PlanOptions): readonly string[] {
  return [
    `Assumed: every pod starts at once and runs for ${until}, with the GPU activity ${activity}.`,
    'Not considered: CPU, memory, node selectors, affinity, taints and volumes of pods.',
  ]
}
