/**
 * The operator's own resources: one definition for their types and for the CustomResourceDefinitions
 * (`crd.ts`). Every field has a description: `kubectl explain` shows it. Patterns are regular expressions of
 * Go as well.
 */
import { Type, type TProperties, type TSchema } from 'typebox'
import { type Value } from '../../protocol/fields.ts'
import { MAX_GPUS, MAX_RESERVE_MIB, MAX_VRAM_MIB } from '../../protocol/limits.ts'
import type { ObjectMeta } from './kubernetes.ts'
import { HELM_PERCENT, NODE_LABELS } from './names.ts'
import { MAX_PERCENT, MIN_PERCENT } from './percent.ts'

/** Pods that hold VRAM on one node; as attempts on a node of the controller. */
const MAX_CLAIMS = 1024
const MAX_CONDITIONS = 16

const PERCENT_SOURCES = ['VendorNodePolicy', 'NodeLabel', 'ClusterGPUPolicy', 'Helm'] as const
export type PercentSource = (typeof PERCENT_SOURCES)[number]

// ---- kinds of fields ----

function whole(minimum: number, maximum: number, description: string) {
  return Type.Integer({ minimum, maximum, description })
}

function mib(description: string, maximum = MAX_VRAM_MIB * MAX_GPUS) {
  return whole(0, maximum, `${description}, in MiB.`)
}

function words(maxLength: number, description: string, pattern?: string) {
  return Type.String({ minLength: 1, maxLength, description, ...(pattern === undefined ? {} : { pattern }) })
}

function record<P extends TProperties>(properties: P, description: string) {
  return Type.Object(properties, { description })
}

function listOf<T extends TSchema>(items: T, maxItems: number, description: string) {
  return Type.Array(items, { maxItems, description })
}

const DNS_NAME = '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$'

function percent(description: string) {
  return whole(MIN_PERCENT, MAX_PERCENT, description)
}

// ---- status ----

const Condition = record(
  {
    type: words(316, 'Kind of the condition, for example Ready.'),
    status: Type.Unsafe<'True' | 'False' | 'Unknown'>({
      type: 'string',
      enum: ['True', 'False', 'Unknown'],
      description: 'Whether the condition holds.',
    }),
    observedGeneration: Type.Optional(
      whole(0, Number.MAX_SAFE_INTEGER, 'Generation of the object that the condition was derived from.'),
    ),
    lastTransitionTime: Type.String({
      format: 'date-time',
      description: 'When the status of the condition last changed.',
    }),
    reason: words(1024, 'Reason of the status in one CamelCase word.', '^[A-Za-z][A-Za-z0-9_,:]*$'),
    message: Type.String({ maxLength: 32_768, description: 'The reason as a sentence.' }),
  },
  'One condition of the object.',
)
export type Condition = Value<typeof Condition>

const conditions = {
  observedGeneration: Type.Optional(
    whole(0, Number.MAX_SAFE_INTEGER, 'Generation of the object that the operator has last seen.'),
  ),
  conditions: Type.Optional(
    listOf(Condition, MAX_CONDITIONS, 'Findings of the operator about the object; one entry per type.'),
  ),
}

const Overcommit = record(
  {
    percent: percent('Extra schedulable VRAM of the node for swappable pods, in percent of physical VRAM.'),
    source: Type.Unsafe<PercentSource>({
      type: 'string',
      enum: [...PERCENT_SOURCES],
      description:
        'Source of the percentage, in order of precedence: VendorNodePolicy, label of the node, ' +
        'ClusterGPUPolicy, Helm value.',
    }),
  },
  'The overcommit in effect on the node.',
)

// ---- ClusterGPUPolicy ----

const ClusterGPUPolicySpec = record(
  {
    defaultVramOvercommitPercent: Type.Optional(
      percent(
        'Extra schedulable VRAM per GPU for swappable pods, in percent of physical VRAM: with 0 only ' +
          'physical VRAM, with 50 up to 150% of it. Applies to nodes without a percentage of their own. ' +
          `If omitted, the Helm value ${HELM_PERCENT} applies. A lower value moves no pod.`,
      ),
    ),
    safetyReserveMib: Type.Optional(
      whole(0, MAX_RESERVE_MIB, 'VRAM of each GPU that no pod gets, in MiB; 2048 if omitted.'),
    ),
    idleSwapOutSeconds: Type.Optional(
      whole(
        1,
        86_400,
        'Time without GPU use after which a swappable pod may be swapped out, in seconds; 300 if omitted.',
      ),
    ),
  },
  'Defaults of all GPU nodes of the cluster.',
)
export type ClusterGPUPolicySpec = Value<typeof ClusterGPUPolicySpec>

const ClusterGPUPolicyStatus = record(
  {
    ...conditions,
    nodes: Type.Optional(whole(0, 1_000_000, 'Number of nodes whose percentage comes from this policy.')),
  },
  'What the operator reports about the policy.',
)

// ---- VendorNodePolicy ----

const VendorNodePolicySpec = record(
  {
    nodeName: Type.Optional(
      words(253, 'Name of the node; the name of the policy if omitted. Cannot be changed.', DNS_NAME),
    ),
    vramOvercommitPercent: Type.Optional(
      percent(
        'Extra schedulable VRAM per GPU of this node for swappable pods, in percent of physical VRAM. 0 ' +
          `disables overcommit on this node. If omitted, the label ${NODE_LABELS.overcommitPercent} of the ` +
          'node applies, then the ClusterGPUPolicy, then the Helm value.',
      ),
    ),
    safetyReserveMib: Type.Optional(
      whole(
        0,
        MAX_RESERVE_MIB,
        'VRAM of each GPU of this node that no pod gets, in MiB; that of the ClusterGPUPolicy if omitted.',
      ),
    ),
  },
  'Settings of one GPU node.',
)
export type VendorNodePolicySpec = Value<typeof VendorNodePolicySpec>

const VendorNodePolicyStatus = record(conditions, 'What the operator reports about the policy.')

// ---- GPUNode ----

const Gpu = record(
  {
    uuid: words(100, 'Identifier of the GPU, as its driver reports it.'),
    model: Type.Optional(words(253, 'Product name of the GPU.')),
    physicalMib: mib('Physical VRAM', MAX_VRAM_MIB),
    effectiveMib: mib('Schedulable VRAM: physical VRAM and the overcommit'),
    committedMib: mib('VRAM of all pods that are placed here, resident or not'),
    residentMib: mib('VRAM of the pods that are resident'),
    foreignMib: mib('VRAM used by processes that Headroom did not place', MAX_VRAM_MIB),
    swappedOutMib: mib('VRAM of the pods that are swapped out'),
  },
  'One GPU.',
)

const Claim = record(
  {
    podUid: words(64, 'UID of the pod.'),
    podNamespace: words(63, 'Namespace of the pod.'),
    podName: words(253, 'Name of the pod.'),
    gpuUuids: listOf(words(100, 'Identifier of a GPU.'), MAX_GPUS, 'GPUs of the pod.'),
    vramMib: mib('VRAM of the pod on each of these GPUs', MAX_VRAM_MIB),
    swappable: Type.Boolean({ description: 'Whether the pod may be swapped out.' }),
  },
  'VRAM that one pod has reserved. Written before the pod is bound, so that two operators cannot assign ' +
    'it twice.',
)

const GPUNodeStatus = record(
  {
    ...conditions,
    overcommit: Type.Optional(Overcommit),
    gpuCount: Type.Optional(whole(0, MAX_GPUS, 'Number of GPUs.')),
    physicalMib: Type.Optional(mib('Physical VRAM of all GPUs')),
    effectiveMib: Type.Optional(mib('Schedulable VRAM of all GPUs')),
    committedMib: Type.Optional(mib('VRAM of all placed pods')),
    swappedOutMib: Type.Optional(mib('VRAM of all pods that are swapped out')),
    gpus: Type.Optional(listOf(Gpu, MAX_GPUS, 'The GPUs of the node.')),
    claims: Type.Optional(listOf(Claim, MAX_CLAIMS, 'Pods with reserved VRAM on the node.')),
  },
  'The GPUs of the node, as the agent and the operator see them.',
)
export type GPUNodeStatus = Value<typeof GPUNodeStatus>
export type Claim = Value<typeof Claim>
export type GpuStatus = Value<typeof Gpu>

// ---- the kinds ----

/** A rule in CEL; `path` is what the message is about. */
export interface CelRule {
  readonly rule: string
  readonly message: string
  readonly fieldPath?: string
}

export interface PrinterColumn {
  readonly name: string
  readonly type: 'integer' | 'string' | 'date'
  readonly jsonPath: string
  readonly description?: string
}

export interface OwnKind {
  readonly kind: string
  readonly plural: string
  readonly shortName: string
  readonly description: string
  readonly spec: TSchema | null
  readonly status: TSchema
  /** Rules of the whole object and of its spec. */
  readonly rules: readonly CelRule[]
  readonly specRules: readonly CelRule[]
  readonly columns: readonly PrinterColumn[]
  readonly selectableFields: readonly string[]
}

const READY: PrinterColumn = {
  name: 'Ready',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].status',
}
const AGE: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

export const CLUSTER_GPU_POLICY: OwnKind = {
  kind: 'ClusterGPUPolicy',
  plural: 'clustergpupolicies',
  shortName: 'cgp',
  description: 'Defaults of all GPU nodes of the cluster. Only one exists, with the name default.',
  spec: ClusterGPUPolicySpec,
  status: ClusterGPUPolicyStatus,
  rules: [
    {
      rule: "self.metadata.name == 'default'",
      message: 'the only ClusterGPUPolicy has the name default',
    },
  ],
  specRules: [],
  columns: [
    { name: 'Percent', type: 'integer', jsonPath: '.spec.defaultVramOvercommitPercent' },
    { name: 'Reserve', type: 'integer', jsonPath: '.spec.safetyReserveMib', description: 'In MiB.' },
    { name: 'Idle', type: 'integer', jsonPath: '.spec.idleSwapOutSeconds', description: 'In seconds.' },
    { name: 'Nodes', type: 'integer', jsonPath: '.status.nodes' },
    READY,
    AGE,
  ],
  selectableFields: [],
}

export const VENDOR_NODE_POLICY: OwnKind = {
  kind: 'VendorNodePolicy',
  plural: 'vendornodepolicies',
  shortName: 'vnp',
  description: 'Settings of one GPU node. A node has at most one.',
  spec: VendorNodePolicySpec,
  status: VendorNodePolicyStatus,
  rules: [],
  specRules: [
    {
      rule:
        'has(self.nodeName) == has(oldSelf.nodeName) && ' +
        '(!has(self.nodeName) || self.nodeName == oldSelf.nodeName)',
      message: 'nodeName cannot be changed; delete the policy and create another',
      fieldPath: '.nodeName',
    },
  ],
  columns: [
    { name: 'Node', type: 'string', jsonPath: '.spec.nodeName' },
    { name: 'Percent', type: 'integer', jsonPath: '.spec.vramOvercommitPercent' },
    { name: 'Reserve', type: 'integer', jsonPath: '.spec.safetyReserveMib', description: 'In MiB.' },
    READY,
    AGE,
  ],
  selectableFields: ['.spec.nodeName'],
}

export const GPU_NODE: OwnKind = {
  kind: 'GPUNode',
  plural: 'gpunodes',
  shortName: 'gn',
  description: 'The GPUs of one node of the same name. The operator writes it; it has no settings.',
  spec: null,
  status: GPUNodeStatus,
  rules: [],
  specRules: [],
  columns: [
    { name: 'GPUs', type: 'integer', jsonPath: '.status.gpuCount' },
    { name: 'Physical', type: 'integer', jsonPath: '.status.physicalMib', description: 'In MiB.' },
    { name: 'Effective', type: 'integer', jsonPath: '.status.effectiveMib', description: 'In MiB.' },
    { name: 'Committed', type: 'integer', jsonPath: '.status.committedMib', description: 'In MiB.' },
    { name: 'Out', type: 'integer', jsonPath: '.status.swappedOutMib', description: 'In MiB.' },
    { name: 'Percent', type: 'integer', jsonPath: '.status.overcommit.percent' },
    { name: 'Source', type: 'string', jsonPath: '.status.overcommit.source' },
    { name: 'Agent', type: 'string', jsonPath: '.status.conditions[?(@.type=="AgentReady")].status' },
    READY,
    AGE,
  ],
  selectableFields: [],
}

export const OWN_KINDS: readonly OwnKind[] = [CLUSTER_GPU_POLICY, VENDOR_NODE_POLICY, GPU_NODE]

export interface ClusterGPUPolicy {
  readonly metadata: ObjectMeta
  readonly spec: ClusterGPUPolicySpec
}

export interface VendorNodePolicy {
  readonly metadata: ObjectMeta
  readonly spec: VendorNodePolicySpec
}
