/** AdmissionReview, version admission.k8s.io/v1: answers of the operator's webhooks. */
import { isDeepStrictEqual } from 'node:util'
import { type FieldFault, faultText } from '../contract/field-fault.ts'
import type { Pod } from '../contract/kubernetes.ts'
import { clusterPolicyFaults, nodePolicyFaults } from '../contract/overcommit.ts'
import { forbiddenChanges, runtimeOf } from '../contract/pod-request.ts'
import type { ClusterGPUPolicy, VendorNodePolicy } from '../contract/policies.ts'
import type { Percent } from '../../protocol/units.ts'
import type { JsonPatchStep } from '../ports/kube-api.ts'
import type { AdmissionOptions } from './admission-options.ts'
import { type Admitted, admitPod } from './admit-pod.ts'
import { pinnedNodeOf, withPercent } from './agent-pod.ts'
import { type ForecastNode, policyForecast } from '../contract/policy-forecast.ts'

export interface AdmissionRequest {
  readonly uid: string
  readonly operation: string
  readonly kind: { readonly kind: string }
  readonly object: unknown
  readonly oldObject?: unknown
  readonly dryRun?: unknown
}

export interface AdmissionAnswer {
  readonly apiVersion: 'admission.k8s.io/v1'
  readonly kind: 'AdmissionReview'
  readonly response: {
    readonly uid: string
    readonly allowed: boolean
    readonly status?: { readonly code: number; readonly reason: string; readonly message: string }
    readonly patchType?: 'JSONPatch'
    readonly patch?: string
    readonly warnings?: readonly string[]
  }
}

/** The API server cuts longer ones, and drops all beyond 4,096 characters. */
const MAX_WARNING = 256
const MAX_WARNINGS = 15

/** The request of a review; null for another document. */
export function requestOf(review: unknown): AdmissionRequest | null {
  if (!isRecord(review) || review['apiVersion'] !== 'admission.k8s.io/v1') return null
  const { request } = review
  if (!isRecord(request) || !isRecord(request['kind'])) return null
  const isWhole = typeof request['uid'] === 'string' && typeof request['operation'] === 'string'
  return isWhole ? (request as unknown as AdmissionRequest) : null
}

export function mutatePod({ uid, object, operation }: AdmissionRequest, options: AdmissionOptions) {
  if (operation !== 'CREATE' || !isPod(object)) return allowed(uid)
  const decided = admitPod(object, options)
  if (options.observes) return allowed(uid, observedWarnings(decided))
  if (!decided.ok) return refused(uid, decided.faults)
  return allowed(uid, decided.warnings, patchOf(object, decided.pod))
}

/** Null: the pod is not one of an agent that is being created. */
export function nodeOfAgent({ object, operation }: AdmissionRequest): string | null {
  return operation === 'CREATE' && isPod(object) ? pinnedNodeOf(object) : null
}

/** @param percent of its node; null: it is not known */
export function mutateAgent({ uid, object }: AdmissionRequest, percent: Percent | null): AdmissionAnswer {
  if (percent === null || !isPod(object)) return allowed(uid)
  return allowed(uid, [], patchOf(object, withPercent(object, percent)))
}

/**
 * @param nodes null: they could not be read in time
 * @param simulated lines of the operator
 */
export function previewPolicy(
  { uid, kind, object }: AdmissionRequest,
  nodes: readonly ForecastNode[] | null,
  simulated: readonly string[],
): AdmissionAnswer {
  if (!isRecord(object) || !isRecord(object['spec'])) return allowed(uid)
  const ofNodes =
    nodes === null
      ? ['forecast: no limits, because the API server did not answer in time.']
      : policyForecast(kind.kind, object as unknown as ClusterGPUPolicy, nodes)
  return allowed(uid, [...ofNodes, ...simulated])
}

function observedWarnings(decided: Admitted): readonly string[] {
  return decided.ok
    ? decided.warnings
    : decided.faults.map((fault) => `Headroom only observes; it would refuse the pod: ${faultText(fault)}`)
}

/**
 * Validates the pod after all webhooks have changed it: rules that must still hold, and fields that an owner
 * may not change.
 */
export function validatePod(
  { uid, object, oldObject, operation }: AdmissionRequest,
  options: AdmissionOptions,
) {
  if (!isPod(object) || options.observes) return allowed(uid)
  if (operation === 'UPDATE' && isPod(oldObject)) {
    const isOurs = runtimeOf(oldObject.metadata).isOurs || runtimeOf(object.metadata).isOurs
    const faults = isOurs ? forbiddenChanges(oldObject.metadata, object.metadata) : []
    return faults.length === 0 ? allowed(uid) : refused(uid, faults)
  }
  if (operation !== 'CREATE') return allowed(uid)
  const decided = admitPod(object, options)
  if (!decided.ok) return refused(uid, decided.faults)
  const [missing] = patchOf(object, decided.pod)
  if (missing === undefined) return allowed(uid)
  const message = 'was not set by Headroom, or another webhook has changed it'
  return refused(uid, [{ path: missing.path.slice(1).replaceAll('/', '.'), message }])
}

/** `others`: all VendorNodePolicies of the cluster. */
export function validatePolicy(
  { uid, kind, object, operation }: AdmissionRequest,
  others: readonly VendorNodePolicy[],
) {
  if (operation === 'DELETE' || !isRecord(object) || !isRecord(object['spec'])) return allowed(uid)
  const faults =
    kind.kind === 'VendorNodePolicy'
      ? nodePolicyFaults(object as unknown as VendorNodePolicy, others)
      : kind.kind === 'ClusterGPUPolicy'
        ? clusterPolicyFaults(object as unknown as ClusterGPUPolicy)
        : []
  return faults.length === 0 ? allowed(uid) : refused(uid, faults)
}

function allowed(
  uid: string,
  warnings: readonly string[] = [],
  patch: readonly JsonPatchStep[] = [],
): AdmissionAnswer {
  return answer({
    uid,
    allowed: true,
    ...(warnings.length === 0
      ? {}
      : { warnings: warnings.slice(0, MAX_WARNINGS).map((text) => text.slice(0, MAX_WARNING)) }),
    ...(patch.length === 0
      ? {}
      : { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }),
  })
}

function refused(uid: string, faults: readonly FieldFault[]): AdmissionAnswer {
  const message = faults.map(faultText).join('; ')
  return answer({ uid, allowed: false, status: { code: 422, reason: 'Invalid', message } })
}

function answer(response: AdmissionAnswer['response']): AdmissionAnswer {
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }
}

/** Steps for the fields of `metadata` and `spec` that differ. */
function patchOf(before: Pod, after: Pod): readonly JsonPatchStep[] {
  const parts = [
    ['metadata', before.metadata, after.metadata],
    ['spec', before.spec, after.spec],
  ] as const
  return parts.flatMap(([part, was, is]) =>
    Object.entries(is).flatMap(([name, value]): JsonPatchStep[] =>
      isDeepStrictEqual((was as Record<string, unknown>)[name], value)
        ? []
        : [{ op: 'add', path: `/${part}/${name}`, value }],
    ),
  )
}

function isPod(value: unknown): value is Pod {
  return (
    isRecord(value) &&
    isRecord(value['metadata']) &&
    isRecord(value['spec']) &&
    Array.isArray(value['spec']['containers'])
  )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
