/**
 * The API server of Kubernetes. Two implementations keep one contract,
 * test/support/kubernetes/api-contract.ts: the client over HTTPS, and the API server in memory.
 */
import type { FieldFault } from '../contract/field-fault.ts'
import type { ObjectMeta } from '../contract/kubernetes.ts'
import { API_GROUP, API_VERSION } from '../contract/names.ts'
import type { DurationMs } from '../../protocol/units.ts'

/** Path of the objects of a kind. */
export interface ResourceKind {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly isNamespaced: boolean
}

export interface KubeObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
  readonly [field: string]: unknown
}

export interface ObjectKey {
  /** Only of a namespaced kind. */
  readonly namespace?: string
  readonly name: string
}

export interface ListOptions {
  /** Namespace of a namespaced kind; all namespaces if omitted. */
  readonly namespace?: string
  readonly labelSelector?: string
  /** Maximum number of items of this page. */
  readonly limit?: number
  /** Token of the previous page. */
  readonly continueFrom?: string
}

export interface KubeList {
  readonly items: readonly KubeObject[]
  readonly resourceVersion: string
  /** Null on the last page. */
  readonly continueFrom: string | null
}

export interface WatchOptions {
  readonly namespace?: string
  readonly labelSelector?: string
  /** Events after this version. */
  readonly resourceVersion: string
  /** Time after which the server ends the watch. */
  readonly timeoutMs: DurationMs
  readonly signal: AbortSignal
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  readonly object: KubeObject
}

export interface WriteOptions {
  /** `status`, or `binding` of a new pod. */
  readonly subresource?: 'status' | 'binding'
  readonly isDryRun?: boolean
  /** Warnings of the server and its admission. */
  readonly onWarning?: (text: string) => void
}

export type JsonPatchStep =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }

/** `merge`: RFC 7386. `json`: RFC 6902. A `resourceVersion` in a merge patch must be the current one. */
export type KubePatch =
  | { readonly type: 'merge'; readonly body: object }
  | { readonly type: 'json'; readonly body: readonly JsonPatchStep[] }

export interface DeleteOptions {
  readonly uid?: string
  readonly resourceVersion?: string
}

/** Every method rejects with KubeError when the server refuses, and with another error when it is away. */
export interface KubeApi {
  get(kind: ResourceKind, key: ObjectKey): Promise<KubeObject>
  list(kind: ResourceKind, options?: ListOptions): Promise<KubeList>
  /**
   * Ends without an error when the server ends it. Rejects with 410 when the version is too old: list again.
   */
  watch(kind: ResourceKind, options: WatchOptions): AsyncIterable<WatchEvent>
  create(kind: ResourceKind, object: KubeObject, options?: WriteOptions): Promise<KubeObject>
  /** If the object has a `resourceVersion`, it must be the current one. */
  replace(kind: ResourceKind, object: KubeObject, options?: WriteOptions): Promise<KubeObject>
  patch(kind: ResourceKind, key: ObjectKey, patch: KubePatch, options?: WriteOptions): Promise<KubeObject>
  delete(kind: ResourceKind, key: ObjectKey, options?: DeleteOptions): Promise<void>
}

/** Codes that callers distinguish. */
export const NOT_FOUND = 404
export const CONFLICT = 409
export const GONE = 410
export const INVALID = 422

/** The `Status` with which the API server refuses. */
export class KubeError extends Error {
  override readonly name = 'KubeError'
  readonly code: number
  readonly reason: string
  /** Fields that are wrong. */
  readonly faults: readonly FieldFault[]
  readonly retryAfterMs: DurationMs | null

  constructor(
    code: number,
    reason: string,
    message: string,
    more: { readonly faults?: readonly FieldFault[]; readonly retryAfterMs?: DurationMs | null } = {},
  ) {
    super(message)
    this.code = code
    this.reason = reason
    this.faults = more.faults ?? []
    this.retryAfterMs = more.retryAfterMs ?? null
  }
}

export const PODS = coreKind('pods', 'Pod', true)
export const NODES = coreKind('nodes', 'Node', false)
export const NAMESPACES = coreKind('namespaces', 'Namespace', false)
export const CONFIG_MAPS = coreKind('configmaps', 'ConfigMap', true)
export const SECRETS = coreKind('secrets', 'Secret', true)
export const LEASES: ResourceKind = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  isNamespaced: true,
}
export const DAEMON_SETS: ResourceKind = {
  group: 'apps',
  version: 'v1',
  plural: 'daemonsets',
  kind: 'DaemonSet',
  isNamespaced: true,
}
export const DEPLOYMENTS: ResourceKind = { ...DAEMON_SETS, plural: 'deployments', kind: 'Deployment' }
export const RUNTIME_CLASSES: ResourceKind = {
  group: 'node.k8s.io',
  version: 'v1',
  plural: 'runtimeclasses',
  kind: 'RuntimeClass',
  isNamespaced: false,
}
export const PRIORITY_CLASSES: ResourceKind = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  plural: 'priorityclasses',
  kind: 'PriorityClass',
  isNamespaced: false,
}
export const RESOURCE_DEFINITIONS: ResourceKind = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
}
export const EVENTS: ResourceKind = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  isNamespaced: true,
}
export const TOKEN_REVIEWS: ResourceKind = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'tokenreviews',
  kind: 'TokenReview',
  isNamespaced: false,
}
export const POLICY_BINDINGS = webhookKind(
  'validatingadmissionpolicybindings',
  'ValidatingAdmissionPolicyBinding',
)
export const MUTATING_WEBHOOKS = webhookKind('mutatingwebhookconfigurations', 'MutatingWebhookConfiguration')
export const VALIDATING_WEBHOOKS = webhookKind(
  'validatingwebhookconfigurations',
  'ValidatingWebhookConfiguration',
)

/** The resource of one of the operator's own kinds. */
export function ownResource(own: { readonly kind: string; readonly plural: string }): ResourceKind {
  return { group: API_GROUP, version: API_VERSION, plural: own.plural, kind: own.kind, isNamespaced: false }
}

export function apiVersionOf({ group, version }: ResourceKind): string {
  return group === '' ? version : `${group}/${version}`
}

function coreKind(plural: string, kind: string, isNamespaced: boolean): ResourceKind {
  return { group: '', version: 'v1', plural, kind, isNamespaced }
}

function webhookKind(plural: string, kind: string): ResourceKind {
  return { group: 'admissionregistration.k8s.io', version: 'v1', plural, kind, isNamespaced: false }
}
