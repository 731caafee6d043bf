/**
 * What the API server is told about the webhooks: which objects it sends, and what happens without an answer.
 */
import { AGENT_LABELS, API_GROUP, API_VERSION, RUNTIME_LABEL, RUNTIME_VALUE } from '../contract/names.ts'
import { OWN_KINDS } from '../contract/policies.ts'

/** Place of a webhook: a Service of the cluster, or an address. */
export type WebhookPlace =
  | { readonly service: { readonly namespace: string; readonly name: string; readonly port: number } }
  | { readonly url: string }

export interface WebhookConfiguration {
  readonly apiVersion: 'admissionregistration.k8s.io/v1'
  readonly kind: 'MutatingWebhookConfiguration' | 'ValidatingWebhookConfiguration'
  readonly metadata: { readonly name: string }
  readonly webhooks: readonly object[]
}

const NAME = 'headroom-admission'
const POD_SECONDS = 5
const POLICY_SECONDS = 10

const CREATE_PODS = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }]
const OURS = { matchLabels: { [RUNTIME_LABEL]: RUNTIME_VALUE } }
const OF_OTHERS = {
  matchExpressions: [
    { key: RUNTIME_LABEL, operator: 'Exists' },
    { key: RUNTIME_LABEL, operator: 'NotIn', values: [RUNTIME_VALUE] },
  ],
}

/**
 * Only pods with our label depend on the webhooks (failurePolicy Fail): while no webhook answers, all others
 * are created as ever. Pods with another value of the label are seen for the sake of a warning, and those of
 * the agents for their variable.
 */
export function webhookConfigurations(
  place: WebhookPlace,
  /** Null: left to the process, which knows its certificates. */
  caBundle: string | null,
): readonly WebhookConfiguration[] {
  const webhook = (name: string, path: string, failurePolicy: 'Fail' | 'Ignore', more: object): object => ({
    name: `${name}.${API_GROUP}`,
    clientConfig: { ...clientOf(place, path), ...(caBundle === null ? {} : { caBundle }) },
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    failurePolicy,
    timeoutSeconds: POD_SECONDS,
    ...more,
  })
  const again = { reinvocationPolicy: 'IfNeeded' }
  const updatePods = [{ ...CREATE_PODS[0], operations: ['CREATE', 'UPDATE'] }]
  const policies = {
    apiGroups: [API_GROUP],
    apiVersions: [API_VERSION],
    operations: ['CREATE', 'UPDATE'],
    resources: OWN_KINDS.filter(({ spec }) => spec !== null).map(({ plural }) => plural),
  }
  return [
    {
      ...base('MutatingWebhookConfiguration'),
      webhooks: [
        webhook('mutate-pods', '/mutate-pods', 'Fail', {
          rules: CREATE_PODS,
          objectSelector: OURS,
          // Pods that the kubelet reads from files, and that a cluster already has.
          matchConditions: [{ name: 'unassigned', expression: '!has(object.spec.nodeName)' }],
          ...again,
        }),
        webhook('warn-pods', '/mutate-pods', 'Ignore', {
          rules: CREATE_PODS,
          objectSelector: OF_OTHERS,
          ...again,
        }),
        webhook('mutate-agents', '/mutate-agents', 'Ignore', {
          rules: CREATE_PODS,
          objectSelector: { matchLabels: AGENT_LABELS },
        }),
      ],
    },
    {
      ...base('ValidatingWebhookConfiguration'),
      webhooks: [
        webhook('validate-pods', '/validate-pods', 'Fail', { rules: updatePods, objectSelector: OURS }),
        webhook('validate-policies', '/validate-policies', 'Fail', {
          rules: [policies],
          timeoutSeconds: POLICY_SECONDS,
        }),
        webhook('preview-policies', '/preview-policies', 'Ignore', {
          rules: [policies],
          matchConditions: [{ name: 'dry-run', expression: 'has(request.dryRun) && request.dryRun' }],
          timeoutSeconds: POLICY_SECONDS,
        }),
      ],
    },
  ]
}

function base<K extends WebhookConfiguration['kind']>(kind: K) {
  return { apiVersion: 'admissionregistration.k8s.io/v1' as const, kind, metadata: { name: NAME } }
}

function clientOf(place: WebhookPlace, path: string): object {
  return 'url' in place ? { url: `${place.url}${path}` } : { service: { ...place.service, path } }
}
