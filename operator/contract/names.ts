/**
 * The names of the operator stack (specification 2.5 and 2.6): labels, annotations, variables and values. The
 * domain stands for the specification's `<vendor_domain>`.
 */

export const DOMAIN = 'headroom.dev'

/** Marks a pod as using the GPU runtime. Another value belongs to other software. */
export const RUNTIME_LABEL = 'gpu-runtime'
export const RUNTIME_VALUE = 'headroom'

export const POD_ANNOTATIONS = {
  /** "true" (default) or "false". */
  swapFromVram: `${DOMAIN}/swap-from-vram`,
  /** VRAM of each GPU, a quantity. */
  podVram: `${DOMAIN}/pod-vram`,
  /** Number of GPUs of one node, 1 by default. */
  gpuCount: `${DOMAIN}/gpu-count`,
  /** Names the containers that get the GPUs, separated by commas; all by default. */
  containers: `${DOMAIN}/containers`,
  /**
   * "false": no request to the pod swaps it in. "true": nothing else has to, no probe does. It may be changed
   * at any time.
   */
  wakeOnRequest: `${DOMAIN}/wake-on-request`,
  /** "true": the pod returns to VRAM and stays there. It may be set and removed at any time. */
  keepInVram: `${DOMAIN}/keep-in-vram`,
  /** Written with the binding: the GPUs of the pod, separated by commas. */
  gpuUuids: `${DOMAIN}/gpu-uuids`,
  /** Written by admission: why the pod is not swapped although it asks for it. */
  notSwappable: `${DOMAIN}/not-swappable`,
  /** Written by admission: what it added to the memory of containers, as `main=8192`. */
  memoryRaised: `${DOMAIN}/memory-raised-mib`,
} as const

export const NODE_LABELS = {
  overcommitPercent: `${DOMAIN}/vram-overcommit-percent`,
  /** "true": the node's GPUs belong to Headroom. */
  enabled: `${DOMAIN}/enabled`,
} as const

/** Annotation of a node: its GPUs, as JSON `[{"uuid": …, "model": …, "vram_mib": …}]`. */
export const NODE_GPUS = `${DOMAIN}/gpus`

/** Label of nodes, namespaces and pods: the group of nodes. */
export const GROUP_LABEL = `${DOMAIN}/group`

/** Label of PriorityClasses: the class of their pods, P0 to P4. */
export const CLASS_LABEL = `${DOMAIN}/class`

/**
 * Changed by the operator when it gives up a claim, so that a binding that rests on an older version of the
 * pod is refused; and when VRAM is reserved again, so that the scheduler looks at the pod.
 */
export const PLACING_ANNOTATION = `${DOMAIN}/placing`
/** Condition of a pod: whether its VRAM is reserved, and otherwise what it waits for. */
export const ADMITTED_CONDITION = `${DOMAIN}/VRAMAdmitted`

/** Labels of the pods of the agents. */
export const AGENT_LABELS = {
  'app.kubernetes.io/name': 'headroom',
  'app.kubernetes.io/component': 'agent',
} as const

/** Label of the operator's pod that leads. */
export const LEADER_LABEL = `${DOMAIN}/leads`

/** Keeps a pod from the scheduler until its VRAM is reserved. */
export const SCHEDULING_GATE = `${DOMAIN}/vram`
export const SCHEDULER_NAME = 'headroom-scheduler'

/** A resource of the whole cluster, in MiB, for quotas. No node advertises it (decision 0160). */
export const VRAM_RESOURCE = `${DOMAIN}/vram-mib`

/** GPU nodes carry this taint; admission adds the toleration. */
export const NODE_TAINT = `${DOMAIN}/gpu`

/** A variable by the specification's name, and its alias. The first that is set counts. */
export type VariableNames = readonly [specified: string, alias: string]
export const SWAP_VARIABLE: VariableNames = ['VENDOR_SWAP_FROM_VRAM', 'HEADROOM_SWAP_FROM_VRAM']
export const PERCENT_VARIABLE: VariableNames = [
  'VENDOR_VRAM_OVERCOMMIT_PERCENT',
  'HEADROOM_VRAM_OVERCOMMIT_PERCENT',
]

export const API_GROUP = DOMAIN
export const API_VERSION = 'v1alpha1'
/** The only ClusterGPUPolicy. */
export const CLUSTER_POLICY_NAME = 'default'

/** The Helm value with the cluster's percentage. */
export const HELM_PERCENT = 'controller.clusterOvercommitPercent'
